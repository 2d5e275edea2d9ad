"""The configuration: its sections, where it is read from, and its meaning."""

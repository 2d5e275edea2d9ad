"""Modules in their workers, as the daemon uses them."""

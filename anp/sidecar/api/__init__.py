"""The local HTTP API and the dashboard."""

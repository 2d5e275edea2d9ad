"""Modules and their workers, as the daemon uses them."""

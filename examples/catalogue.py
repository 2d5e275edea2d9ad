"""A catalogue."""

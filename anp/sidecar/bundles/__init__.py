"""Agreed protocols as files that another daemon can read."""

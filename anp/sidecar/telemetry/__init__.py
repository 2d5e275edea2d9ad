"""Counts, spans, live figures and work in progress."""

"""Halves with one semantic fault each, and the checks that have to find it."""

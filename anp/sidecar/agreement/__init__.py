"""Negotiations on a channel, what the owner says about them, and what is stored."""

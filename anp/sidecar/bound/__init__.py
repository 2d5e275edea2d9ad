"""Channels that are bound to a negotiated protocol, for both roles."""

"""Calls from and to peers, from the request to the channel that carries it."""

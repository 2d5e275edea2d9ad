"""Clients of A2A that others wrote, each a program of its own: URL, token and form in,
JSON out with what became of each method.
"""

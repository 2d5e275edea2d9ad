"""Agents that are attached in tests: real programs with the libraries people use.

Each is one file that runs alone, listens on a free port of loopback, and prints its URL
as its first line.
"""

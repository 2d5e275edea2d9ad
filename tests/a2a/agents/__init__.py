"""Agents written from the documents of `a2a-sdk` alone, in two versions of it.

Each file serves the same four agents, each under a path of its own: `writer` streams a
report, `clerk` asks back twice, `painter` returns files, and `oracle` begins at
completed. Each prints its URL as its first line, and runs in an environment of its own.
"""

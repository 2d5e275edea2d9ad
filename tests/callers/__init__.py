"""Programs that call through our daemon, each of a kind that people have.

Each `call_*.py` is one file that runs alone, in an environment where nothing of ours is
needed: it reads a `Request` of `running.py` as JSON and prints the outputs as JSON.
"""

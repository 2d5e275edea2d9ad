"""A group of eight daemons as processes, with much to say and with kills.

* `__main__`: `make groups`: runs it, calm and in trouble, and prints the figures.
* `programs`: The programs of the agents, and what they were told.
* `ledger`: Compares what every member heard with what was said.
"""

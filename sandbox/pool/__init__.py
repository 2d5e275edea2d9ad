"""Modules in their workers, as the daemon uses them.

* `pool`: loads modules once, calls them often, kills late ones.
* `module`: one loaded module: its calls and their limits.
* `validation`: schemas and values, checked in workers of their own.
* `quarantine`: decides when code that keeps killing workers is used no more.
* `history`: the outcomes of runs, for the owner.
* `backend`: the interface of whatever holds workers.
* `config`: the limits of the sandbox.
"""

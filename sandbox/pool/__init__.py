"""Modules in their workers, as the daemon uses them.

* `pool`: loads modules once, calls them often, kills late ones.
* `module`: one loaded module: its calls, their limits, and what it asks of workers.
* `validation`: schemas and values, checked in workers of their own.
* `shares`: whose work waits for a worker, and in which order it goes.
* `history`: the outcomes of runs, and the quarantine of code that kills workers.
* `config`: the limits of the sandbox.
"""

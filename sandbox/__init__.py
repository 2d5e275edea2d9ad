"""Runs generated code, and checks values against schemas, in locked processes.

* `pool`: the daemon's side: modules, workers and limits.
* `processes`: the fork server and the processes of workers.
* `worker`: the code inside a worker.
* `language`: the limits on source text, and the guards at run time.
* `lock`: the lock that the kernel puts on a worker.
* `patterns`: patterns of JSON Schema, in an engine that is linear in the text.
* `plain_schemas`: values that surely fit a harmless schema, told without a worker.
* `frames`: frames between the daemon and a worker: plain values.
* `errors`: the errors of the package.
* `__main__`: `python -m sandbox run`: tries one function.
"""

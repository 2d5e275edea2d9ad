"""The code inside a worker process.

* `worker`: runs one module: loads it once, then answers calls; its guards.
* `schema_worker`: validates schemas and values; loads no module.
* `findings`: says in plain words where a value does not fit its schema.
* `channel`: the worker's end of its channel.
"""

"""The code inside a worker process.

* `worker`: runs one module: loads it once, then answers calls; its guards.
* `schema_worker`: validates schemas and values; loads no module.
* `channel`: the worker's end of its channel.
"""

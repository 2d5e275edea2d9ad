"""The code inside a worker process.

* `worker`: runs one module: loads it once, then answers calls.
* `schema_worker`: validates schemas and values; loads no module.
* `channel`: the worker's end of its channel.
* `guards`: everything a half meets at run time, put together.
"""

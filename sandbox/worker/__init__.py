"""The code inside a worker process."""

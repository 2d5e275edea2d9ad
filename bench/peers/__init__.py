"""A warm call through two daemons beside the same call by other means.

* `__main__`: runs all in turns, and prints times, rates and ratios.
* `http_server`: the function behind a plain web server.
* `sdk_echo`: the function over the official SDK; runs in the SDK's environment.
* `ways`: each way to call, with its processes.
"""

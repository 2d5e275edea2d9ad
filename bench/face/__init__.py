"""A call through the A2A face, against an A2A agent with the same function.

* `__main__`: runs both in turns in both versions, and prints ratios and layers.
* `a2a_agent`: the agent, made with `a2a-sdk` and its store of tasks in SQLite.
* `caller`: a caller that costs little itself.
* `source`: the function, which runs in a child process behind both.
* `stations`: a daemon that notes when a call passes its layers.
"""

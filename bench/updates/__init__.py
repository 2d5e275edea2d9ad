"""A streamed task through two daemons, against an A2A agent that is called directly.

* `__main__`: runs both in turns, and prints the ratio and the share of each layer.
* `a2a_agent`: the agent, made with `a2a-sdk` and its store of tasks in SQLite.
* `source`: the generator behind both.
* `stations`: a daemon that notes when each update passes its layers.
"""

"""Commands about the daemon that runs: its state, its log, its end, what waits.

* `background`: a daemon without a terminal, its log and its end.
* `status`: the state of a daemon on one screen.
* `waiting`: all that waits for the owner, and the decision about it.
"""

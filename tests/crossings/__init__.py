"""Histories of three daemons in which calls, tasks, files and groups cross with faults.

* `clock`: An event loop whose time is a number, so that an hour takes no time.
* `shelf`: The logs of sessions in memory; a kill leaves what was written.
* `wires`: Channels in memory that take time, end, or lose what is under way.
* `node`: One daemon of a history, made of the true parts around such channels.
* `history`: Random steps, and what has to be true at their end.
"""

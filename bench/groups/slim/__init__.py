"""A group over SLIM (`slim-bindings`), with MLS, measured like ours.

* `run`: starts broker, members and sender as three processes; gives the figures.
* `process`: one of these processes; it runs in SLIM's own environment.

`nodelay.c` is loaded into each process, since SLIM's client switches TCP_NODELAY off.
"""

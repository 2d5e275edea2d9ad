"""The demo: two agents meet on this machine, through the commands a user types.

* `demo`: the runs of the demo.
* `repair`: the run in which a broken module is repaired.
* `observer`: the interface of whoever is told how the demo goes.
* `view`: prints the demo for people.
"""

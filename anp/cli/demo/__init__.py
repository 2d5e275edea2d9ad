"""The demo: two agents meet on this machine, through the commands a user types.

* `demo`: the steps of the demo.
* `stage`: its processes: commands, and daemons that run for a while.
* `needs`: the buyer's needs, and the shop's programs.
* `strangers`: bundles with code that reads files, takes all memory, or errs.
* `observer`: the interface of whoever is told how the demo goes.
* `view`: prints the demo for people; the programs of the demo: beside it in a wheel, or
  in a checkout.
"""

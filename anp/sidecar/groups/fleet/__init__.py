"""Groups of a fleet: one daemon has the hub, its sisters serve members on their lines.

* `holder`: The groups of a fleet: each belongs to one daemon, as long as that one
  lives.
* `mail`: Letters between the daemons of a fleet about their groups.
* `branches`: The sisters that serve members of a group whose hub is here.
"""

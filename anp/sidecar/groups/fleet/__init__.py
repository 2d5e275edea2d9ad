"""Groups of a fleet: one daemon has the hub, its sisters serve members on their lines.

* `holder`: The groups of a fleet: each belongs to one daemon, as long as that one
  lives.
* `mail`: Letters between the daemons of a fleet about their groups.
* `branches`: The sisters that serve members of a group whose hub is here.
* `branch`: A group whose hub a sister of the fleet is, as we serve its members on our
  lines.
* `sisters`: The part of this daemon in groups whose hub a sister has, and of sisters in
  ours.
"""

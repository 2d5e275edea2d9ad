"""The hubs of groups: on one daemon, or on several of a fleet.

* `hub`: The message distribution module of one group (GBZ-11, GBZ-17): its hub.
* `tickets`: News of tickets: agents are told until they acknowledge what became of
  theirs.
* `holder`: The groups of a fleet: each belongs to one daemon, as long as that one
  lives.
* `mail`: Letters between the daemons of a fleet about their groups.
* `branches`: The sisters that serve members of a group whose hub is here.
* `branch`: A group whose hub a sister of the fleet is, as we serve its members on our
  lines.
* `sisters`: The part of this daemon in groups whose hub a sister has, and of sisters in
  ours.
"""

"""Groups: the hub that distributes their messages, and taking part in those of others.

* `service`: Groups of this agent, for the faces of the daemon.
* `hub`: The message distribution module of groups (GBZ-11, GBZ-17), on one daemon or
  on several of a fleet.
* `member`: One group at another daemon's hub, as this daemon takes part in it.
* `standing`: The way in which we take part in a group of another daemon's hub, as it is
  stored.
* `presets`: The groups of the owner's settings: made at start, and changed as the
  settings were.
* `frames`: Frames of groups that are kept here, read again.
* `log`: The events of one group: stored in batches, read again, and followed.
* `shelf`: Groups in the store: encrypted, each content sealed for its place.
* `signatures`: Signatures of members over what they say, made and checked.
* `agent`: The attached agent in groups: what others say goes to it, what it answers is
  posted.
* `parts`: Makes the groups of a daemon of its other parts.
* `wires`: The lines of groups: found, and dialled as long as somebody is needed.
* `sealing`: Sealed groups as a member has them.
* `checked_keys`: Keys of DIDs that sign things in groups, checked once each.
* `reception`: The operations of peers about groups: taken at the hub, or as one of its
  members.
* `backlog`: Messages said while a hub was away, told to it no faster than it takes
  them.
"""

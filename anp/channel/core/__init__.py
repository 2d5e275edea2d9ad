"""Decisions about one link, its channels and their keys, without any I/O.

* `link_core`: one link: its channels, their frames, and what is done with each.
* `handshakes`: the handshakes under way on a link, and the frames held for them.
* `traffic`: one open channel: its key, the frames under it, and its end.
* `events`: the events that a core hands to its shell, and the queues they wait in.
* `limits`: the limits of one link, of its keys, and the waits between tries.
* `kept_keys`: resumption: how the keys of a link outlive it, and how they are sealed.
* `pace`: the pace at which somebody may do something, by address.
* `shares`: fair shares of one resource: a number of places, and those who hold them.
* `turns`: the order and the pace of the work that strangers cause; amounts by key that
  are forgotten in the course of time.
"""

"""Decisions about one link, its channels and their keys, without any I/O.

* `link_core`: one link: its channels, their frames, and what is done with each.
* `handshakes`: the handshakes under way on a link, and the frames held for them.
* `traffic`: one open channel: its key, what it carried, what may come next.
* `events`: the events and requests that a core hands to its shell.
* `limits`: the limits of one link.
* `output`: messages for the peer and events for the shell, in order.
* `kept`: a short-term key as it rests on disk, sealed and opened.
* `kept_keys`: resumption: how the keys of a link outlive it.
* `renewal`: the moment at which a key is to be renewed.
* `backoff`: the wait before something is tried again.
* `closing`: the extension `close`, which ends one channel.
* `crossed`: frames that crossed with our word that a channel is closed.
* `optional`: the protocol types that need a capability of both sides (ANP-81).
"""

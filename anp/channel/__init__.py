"""Links and channels over WebSockets: the shells around a pure core.

* `core`: the decisions about a link, without any I/O.
* `channel`: one channel as the rest of the daemon sees it.
* `link`: one WebSocket, its core, and the channels on it.
* `links`: all links: dialled, accepted, found again and kept; keeps a connection to a
  peer open, so that one without an address can be called.
* `dialler`: connects to the WebSocket of a peer, at a checked address.
* `dial_errors`: says in words why a connection to a peer could not be opened.
* `listener`: the port for peers: WebSocket upgrades and plain GET.
* `keeper`: keeps short-term keys in the store and takes them up again.
* `link_keys`: keeps and takes up the keys of one link's channels.
* `admission`: the places of the connections that peers open to us, from `accept` to the
  end.
* `room`: the number of a link's channels, and the end of those on which nothing
  happens.
* `refusals`: refused handshakes: the error of a caller, and our own refusals.
* `stranger_work`: does the work that strangers cause a piece at a time, after all other
  work.
* `pipe`: the WebSocket of one link: the messages that wait to be sent, and an orderly
  end.
* `handshake_answers`: the answers to what the core of a link asks during a handshake.
"""

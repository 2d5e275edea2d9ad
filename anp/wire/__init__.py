"""The bytes between two daemons: frames, messages, handshake, keys. All of it is pure.

* `frames`: the header byte and the protocol data behind it (ANP-12).
* `messages`: the JSON messages of a link, parsed and made.
* `meta_protocol`: the `metaProtocol` of hellos: versions, offers, answers, extensions.
* `encoding`: texts, times and bytes in the one form that is sent.
* `sizes`: the largest sizes of messages, all from one figure.
* `proof`: signatures of hellos, made and verified.
* `keys`: the key schedule: from two fresh keys to a pair of traffic keys.
* `envelope`: encrypts and decrypts the frame inside a message.
* `counters`: counters as ivs, in blocks, and the window against replays.
* `replay`: remembers random ivs and hellos, so that none counts twice.
* `hellos`: makes the two hellos and `finished`.
* `handshake`: the two sides of a handshake, with its theory of operation.
* `moment`: a point in time on both clocks.
* `side`: the common part of both sides of a handshake.
* `events`: the events of a handshake, and its limits.
"""

"""The bytes between two daemons: frames, messages, handshake, keys. All of it is pure.

* `frames`: frames, their header (ANP-12), and their encryption in a message.
* `messages`: the JSON messages of a link, parsed and made, and their encodings.
* `envelopes`: envelopes as JSON and in the binary form.
* `meta_protocol`: the `metaProtocol` of hellos: versions, offers, answers, sizes.
* `hellos`: the messages of a handshake in their usual spelling, by forms.
* `proof`: signatures of hellos, made and verified.
* `keys`: the key schedule: from two fresh keys to a pair of traffic keys.
* `replay`: counters as ivs, and the memory of ivs and hellos; none counts twice.
* `handshake`: the two sides of a handshake, with its theory of operation.
* `moment`: a point in time on both clocks.
* `side`: the common part of both sides of a handshake.
* `outcome`: the limits of a handshake, and the events that it hands to its shell.
* `encrypted`: What is encrypted in a message: its base64, and the envelope around it.
"""

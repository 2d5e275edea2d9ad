"""The daemon: its wire, its peers and its interfaces.

* `wire`: bytes, signatures, keys and the handshake, all pure.
* `identity`: DIDs, their documents and where they are.
* `channel`: links and channels over WebSockets.
* `interaction`: sessions, tasks and messages of agents, pure.
* `protocols`: consensus protocols written by hand.
* `sidecar`: the daemon itself, in rooms of its own.
* `cli`: the commands.
* `__main__`: starts the command line, after a check that the packages found are ours.
* `errors`: the kinds of errors, their exit codes, and one class for each reaction.
* `phases`: tells what a call waits for at the moment, to whoever began it.
* `version`: the version of the installed distribution.
* `extras`: The optional packages, by the extra that brings them, and how to install it.
"""

"""The ways by which the news of sessions reach the peers.

* `line`: One channel that speaks a protocol for tasks, in both directions.
* `lines`: the channels over which GB/Z 185.6 carries sessions.
* `ways`: The line that carries each session: the one on which its peer spoke of it
  last.
* `outbox`: brings news to requesters that registered an address.
* `attempts`: Attempts to bring news to an address that may be away: how often, and how
  long.
* `a2a_carrier`: Tasks of ours at a peer that takes them over A2A.
* `a2a_requests`: Requests of A2A over one channel of ours, and the responses to each.
* `a2a_task`: A task of ours at a peer of A2A: what the peer tells of it, entered into
  the log.
* `one_turn`: Tasks at peers without a protocol for them: calls whose states are made
  here.
* `without_lines`: Tasks at peers to which there is no line: over A2A, or each made as a
  call.
"""

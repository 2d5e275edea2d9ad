"""A2A for callers of this daemon: who they are, what they ask for, their tasks.

* `card`: The card of this daemon: what it can do, for callers of A2A (A2A-8 to A2A-10);
  the cards of this daemon: its own, one per attachment, and those of known callers.
* `desk`: The operations of A2A for its callers, over the sessions of this daemon.
* `face`: The A2A face over HTTP: who calls, how large, and how the answer goes back;
  the header that activates extensions, echoed for those that are known (INT-Q6).
* `rpc`: JSON-RPC 2.0 of A2A 0.3 and 1.0: one request in, one answer or a stream out.
* `rest`: The HTTP+JSON binding of A2A 1.0: paths and HTTP methods in place of JSON-RPC.
* `push`: Brings callers of A2A the updates of their tasks at addresses that they name
  (A2A-25); signs push notifications as JWTs, whose public key callers find under the
  face.
* `channel`: A2A for peers, over the channels between daemons: no HTTP, and no
  credentials.
* `gateway`: The gateway for local agents that speak A2A only: each named peer is an A2A
  agent.
* `own_desk`: A2A for callers at this daemon: its own agent does their tasks.
* `peer_desk`: A2A for local agents that speak nothing else: a peer does their tasks.
* `schemes`: The ways to say who calls, as a card declares them (A2A-3, A2A-9). Pure.
* `door`: The door of the A2A face and of the gateway: who calls, by tokens of ours or
  an issuer's.
"""

"""A2A for callers of this daemon: who they are, what they ask for, their tasks.

* `callers`: The callers of the A2A face: who has a token, and what is exposed to each.
* `card`: The card of this daemon: what it can do, for callers of A2A (A2A-8 to A2A-10).
* `desk`: The operations of A2A for its callers, over the sessions of this daemon.
* `face`: The A2A face over HTTP: who calls, how large, and how the answer goes back.
* `rpc`: JSON-RPC 2.0 of A2A 0.3 and 1.0: one request in, one answer or a stream out.
* `tokens`: The tokens of the callers of the A2A face: a file of the home with their
  hashes.
* `rest`: The HTTP+JSON binding of A2A 1.0: paths and HTTP methods in place of JSON-RPC.
* `admission`: The door of the A2A face: who calls, and how often (A2A-3, A2A-21).
* `cards`: The cards of this daemon: its own, one per attachment, and those of known
  callers.
* `extensions`: The header that activates extensions, echoed for those that are known
  (INT-Q6).
* `issuer`: Callers by signed tokens (JWT) of an issuer that the owner trusts (A2A-3,
  A2A-9).
* `key_source`: The key set of the trusted issuer, from a URL or from a file.
* `schemes`: The ways to say who calls, as a card declares them (A2A-3, A2A-9). Pure.
"""

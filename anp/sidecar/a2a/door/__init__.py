"""The door of the A2A face: who calls, by tokens of ours or of an issuer.

* `admission`: The door of the A2A face: who calls, and how often (A2A-3, A2A-21).
* `callers`: The callers of the A2A face: who has a token, and what is exposed to each.
* `issuer`: Callers by signed tokens (JWT) of an issuer that the owner trusts (A2A-3,
  A2A-9); the key set of the trusted issuer, from a URL or from a file.
* `tokens`: The tokens of the callers of the A2A face: a file of the home with their
  hashes.
"""

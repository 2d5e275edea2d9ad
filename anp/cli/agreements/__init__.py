"""The commands about negotiations and about the protocols that came of them.

* `negotiations`: `negotiations`: how protocols came about, and the owner's word.
* `approvals`: `approvals`: everything that waits for the owner.
* `protocols`: `protocols`: what was agreed.
* `published`: `protocols publish` and its sisters (ANP-95).
* `revocation`: `protocols revoke`, `approve`, `test`, `diff`, `prune`, `usage`.
"""

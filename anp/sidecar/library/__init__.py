"""The owner's view of agreed protocols: listed, revoked, tested again, pruned.

* `written`: the built-in protocols, in the same lists.
* `views`: agreements, halves and documents as the owner reads them.
* `state`: tells the state of an agreement and the reason for it.
* `revocation`: revokes, gives back, approves and prunes.
* `prune_rules`: decides what may be pruned.
* `housekeeper`: forgets peers that only passed by, once a day.
* `retest`: runs the test cases again when the owner asks.
"""

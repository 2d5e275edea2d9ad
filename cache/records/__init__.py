"""The records of the store, as plain data.

* `records`: documents, halves, agreements, revocations, counts of calls; a call that
  has an idempotency key.
* `negotiations`: negotiations, decisions, a day's account, and the ledger.
* `groups`: Records of groups: their heads, and their events in pages.
* `logs`: heads, events and items of append-only logs, and ways to find them.
* `subscriptions`: subscriptions and their firings.
* `peers`: a peer, its other DIDs, its pins, the keys of a DID, and short-term keys.

The key under which a record is stored is made by `cache.parts.shelf.key_of`.
"""

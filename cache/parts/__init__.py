"""The parts of the store, one for each subject.

* `shelf`: the base of all parts: the key of every record, transactions, damage.
* `agreements`: documents, halves and agreements, also imported ones.
* `library`: lists in pages, pruning, documents that the owner revoked, what the
  owner withdrew from peers, and what the owner confirmed for their needs.
* `negotiations`: negotiations, and the owner's decisions for later ones.
* `peers`: peers under all their DIDs, pins, and the keys of DIDs on the web.
* `keys`: short-term keys that outlive their link.
* `calls`: calls of our agent that have an idempotency key.
* `groups`: The part of the store for groups: a head each, and pages of events in order.
* `logs`: append-only logs, such as those of sessions.
* `usage`: counts of calls, accounts and the ledger of calls to models.
* `bounds`: bounds on rows that peers cause: those of one peer never push out another's.
* `leases`: The part of the store for leases: which daemon of a fleet works on which
  item.
* `subscriptions`: subscriptions and their firings.
"""

"""The records of the store, as plain data.

* `records`: documents, halves, agreements, negotiations.
* `protocols`: records that outlive an agreement: revocation and use.
* `keys`: a short-term key.
* `peers`: a peer, its other DIDs, its pins, and the keys of a DID.
* `spending`: a day's account, and the ledger.
"""

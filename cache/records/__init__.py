"""The records of the store, as plain data.

* `records`: documents, halves, agreements, negotiations, peers and pins.
* `protocols`: records that outlive an agreement: revocation and use.
* `keys`: a short-term key.
* `dids`: the keys of a DID.
* `spending`: a day's account, and the ledger.
"""

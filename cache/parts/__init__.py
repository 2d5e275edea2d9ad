"""The parts of the store, one for each kind of record.

* `shelf`: records in rows: keys, checksums, damage.
* `agreements`: documents, halves and agreements.
* `imports`: halves that come from a bundle.
* `pages`: lists in pages, and pruning.
* `rulings`: texts that the owner revoked or gave back.
* `keys`: short-term keys that outlive their link.
* `peers`: peers under all their DIDs, pins, and the keys of DIDs on the web.
* `spending`: accounts and the ledger of calls to models.
* `usage`: counts of calls.
"""

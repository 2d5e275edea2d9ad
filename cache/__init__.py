"""The store: agreements, documents, module halves, keys, and what is known of peers.

* `store`: the store of one daemon, put together from its parts and opened.
* `parts`: one part of the store for each kind of record.
* `records`: the records as plain data.
* `rows`: rows under text keys, and transactions over them.
* `disk`: the rows on disk.
* `redis`: the rows on a Redis or Valkey server.
* `errors`: the errors of the package, one class for each reaction.
* `condition`: an examination of a store: rows, room and damage.
"""

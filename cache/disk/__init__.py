"""The store on disk: SQLite through diskcache, JSON and bytes only.

* `database`: opens the file, runs its work in one thread, explains failures.
* `plain_cache`: diskcache without pickle.
"""

"""The store on disk: SQLite through diskcache, JSON and bytes only."""

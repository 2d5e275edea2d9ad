"""The records of the store, as plain data."""

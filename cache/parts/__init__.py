"""The parts of the store, one for each kind of record."""

"""The owner's view of agreed protocols: listed, revoked, tested again, pruned."""

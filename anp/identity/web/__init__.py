"""DIDs of the web: their documents, proofs, guarded fetches and pinned keys."""

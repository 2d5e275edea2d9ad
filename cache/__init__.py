"""Agreements, documents, module halves and what is known of peers, on disk."""

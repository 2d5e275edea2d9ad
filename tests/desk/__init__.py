"""Tasks for a language model, answered once by a reader at the desk, then replayed."""

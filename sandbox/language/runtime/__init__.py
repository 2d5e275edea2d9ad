"""Guards and replacements that generated code meets when it runs."""

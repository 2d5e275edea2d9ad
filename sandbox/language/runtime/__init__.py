"""Guards and replacements that generated code uses at run time."""

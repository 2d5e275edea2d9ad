"""Guards and replacements that generated code meets when it runs.

* `attributes`: guards of attributes: read, written, deleted.
* `builtin_names`: the builtins that a half has.
* `classes`: class statements.
* `enums`: enumerations.
* `formatting`: `str.format` without attributes.
* `wrapping`: `textwrap` without shared state.
"""

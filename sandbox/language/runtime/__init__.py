"""Guards and replacements that generated code meets when it runs.

* `attributes`: guards of attributes: read, written, deleted.
* `builtin_names`: the builtins that a half has.
* `classes`: class statements.
* `enums`: enumerations.
* `texts`: `str.format` without attributes, `textwrap` without shared state.
"""

"""Measures of the house (`make house`) and the list of assertions (`make assertions`).

- `limits`: every limit with its reason.
- `sources`: the product's files, read and parsed once.
- `folders`: files per folder, file names, lines, complexity.
- `rooms`: the import order that import-linter holds.
- `circles`: groups of modules that import each other.
- `words`: class names and documentation.
- `warm_call`: the files that one call enters, traced in two real daemons.
- `traced_daemon`: the launcher that `warm_call` starts the daemons with.
- `assertions`: every assertion of the test suite, to compare two commits.
"""

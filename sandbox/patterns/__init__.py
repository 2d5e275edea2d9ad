"""Patterns of JSON Schema, run by an engine that takes time by the length of the text.

* `translation`: from ECMA-262 into the words of RE2, or a refusal by name.
* `engine`: compiles and searches.
* `schemas`: the patterns in a schema, and their faults.
"""

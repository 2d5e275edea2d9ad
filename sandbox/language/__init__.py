"""The language layer: the static policy for a half's source, and its facades.

* `policy`: compiles a half; its findings have lines.
* `audit`: examines what was compiled: every attribute is read or set by a guard.
* `opcodes`: the instructions that compiled code may have, and who guards each.
* `transformer`: the rules for syntax, on top of RestrictedPython.
* `names`: the names that a half may use, and its private ones.
* `advice`: tells what to use instead of what is refused.
* `facades`: the parts of standard modules that may be imported.
* `runtime`: guards and replacements at run time.
* `statements`: the rules for annotations, imports and match statements.
* `syntax`: new nodes in the place of old ones, and private names of class bodies.
"""

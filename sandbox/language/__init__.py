"""The language layer: the static policy for a half's source, and its facades.

* `policy`: compiles a half; its findings have lines.
* `transformer`: the rules for syntax, on top of RestrictedPython.
* `names`: the names that a half may use, and its private ones.
* `imports`: imports, bound to facades before anything runs.
* `annotations`: strips annotations, which are never evaluated.
* `patterns`: match statements on plain values and classes.
* `scopes`: private names inside a class body.
* `build`: new nodes in the place of old ones.
* `advice`: tells what to use instead of what is refused.
* `facades`: the parts of standard modules that may be imported.
* `runtime`: guards and replacements at run time.
"""

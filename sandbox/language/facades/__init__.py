"""The named parts of standard modules that generated code may import.

* `facade`: the facade itself: named parts, read-only.
* `modules`: the table: which modules, and which of their names.
* `objects`: replacements for members that are too open; XML without entities.
* `log`: `print` and `logging`, with a cap.
"""

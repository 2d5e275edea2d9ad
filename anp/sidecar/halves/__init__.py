"""Module halves: loaded into the sandbox, and checked before they are used.

* `workshop`: loads stored halves, tries new ones, and has minds write them.
* `protocol`: a document and our loaded half of it, as a channel uses them.
"""

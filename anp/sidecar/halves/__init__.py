"""Module halves: loaded into the sandbox, and checked before they are used.

* `workshop`: loads stored halves, tries new ones, and has minds write them.
* `planned`: a half that rules wrote, run as a plan in the daemon.
* `protocol`: a document and our loaded half of it, as a channel uses them.
"""

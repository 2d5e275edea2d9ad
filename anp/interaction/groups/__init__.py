"""Groups: members that talk through one hub, which numbers every message. Pure.

* `elements`: a group, its members and its policy.
* `operations`: the operations by which members and hub change a group, and the answers.
"""

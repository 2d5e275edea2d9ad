"""Groups in the local API.

* `operations`: Groups in the local API: made, joined, managed, spoken in and followed.
* `approvals`: Invitations and applications of groups that wait for the owner's
  decision.
* `bodies`: The bodies of requests about groups.
* `views`: Groups and their events, as the local API shows them.
"""

"""Negotiations on a channel, the owner's word about them, and what is stored.

* `agreement`: negotiates on a channel and stores what was agreed.
* `stored`: decides which document, half and agreement are stored.
* `case`: one running negotiation, and the rule `approve`: when the owner is asked.
* `queue`: the owner's queue of negotiations, and if a known hash may be confirmed.
* `meanings`: notices that a capability is described in other words than agreed.
* `access`: needs that the owner confirmed, and the places of strangers in the queue.
* `rulings`: decides from records what the owner's word means.
* `refusals`: a mind that agrees to no text that failed or was revoked.
* `outcomes`: the outcome of test cases, and how long a failed text is refused.
* `offline`: runs agreed test cases again, by one side alone.
* `approvals`: the owner's words about a capability for a peer, where no text is agreed.
"""

"""Sealed groups: the hub forwards messages that only the members can read. Pure.

Four layers, each of which rests on the one before it:

1. *Membership.* Admins sign each change of members with the key of their DID. Each
   entry names the hash of the one before, so that there is one history, and an agent is
   a member only if an admin added it. The hash of the newest entry names the epoch.
2. *Packages.* In each epoch every member makes two fresh keys, one to agree on secrets
   (X25519) and one to sign messages (P-256), and signs both with the key of its DID,
   together with the epoch's hash.
3. *Grants.* A sender makes a chain key for the epoch and gives it to each member of it,
   encrypted under a secret that only the two of them can agree on.
4. *Messages.* Each is encrypted once, under a key that the chain key yields and that is
   deleted after its use. Its header has the epoch's hash, sender, counter, and how many
   messages the sender has seen, with a hash over them; the sender's key signs it all.

The shell feeds everything in the one order that the hub gives to the group, what the
member itself sent included, and stores the changed rows before it sends anything.

Not found out by the members: that the last messages of somebody are held back, as long
as nobody who saw them says anything, and that the hub delivers nothing at all. The hub
sees who sends, when, to which group, and how much.

* `errors`: the errors that refuse what a hub or a member sent, and what is noticed.
* `encoding`: fields of JSON, keys and signatures as they travel.
* `membership`: the chain of entries in which admins change the members.
* `packages`: keys of a member for one epoch, and grants of chain keys.
* `ratchet`: chain keys and the message keys made of them.
* `message`: the bytes of a sealed message.
* `transcript`: the hash over the messages of an epoch in their order.
* `epoch`: one epoch of one member, which seals and opens.
* `rows`: the stored form of one epoch.
* `member`: one member of one sealed group, over all epochs, and its stored rows.
"""

"""Calls from and to peers, from the request to the channel that carries it.

* `call`: a call of our agent: its request, its state, and its result with its steps.
* `caller`: carries one call from the request to its answer.
* `journal`: calls that outlive their request, kept by id.
* `keys`: idempotency keys on disk, so that they outlive the daemon.
* `events`: events of the daemon, and the hub that spreads them.
* `binder`: finds or makes the protocol for a need, and a channel bound to it.
* `candidates`: the consensus protocols that serve a call.
* `known`: the stored agreements that a call may go through.
* `prepared`: a request made ready, whatever it goes through.
* `requesters`: the channels on which we call, by agreement.
* `renewer`: renews those channels in time.
* `question`: questions to a peer about protocols: for its list, and in words.
* `acceptor`: channels in: chooses what each one speaks.
* `enforcer`: ends open channels that the owner's word allows no longer.
* `places`: the places of the negotiations that peers begin with us, in fair shares.
"""

"""Channels that are bound to a negotiated protocol, in both roles.

The requester sends what its half encoded, and its half decodes the answers. The
provider judges each request by the document, runs its half on it, and makes the calls
of capabilities that the half asks for. A dialogue beside the calls (PT=00) carries test
cases, reports of errors and questions.

Repairs. A side that gets a message which breaks the document reports the id of its
envelope. The other side looks the message up among its last exchanges and judges it: by
the agreed test cases, by the schemas, and by the model if both say nothing. If the
fault is its own, a mind writes the half anew; the new revision has to pass every check
of a half and the agreed cases. Only then is the fault admitted, and the message in
question made and sent anew. An answer that only our own half cannot read needs no word
to the peer: our half is repaired and reads it again.

Test cases. The requester proposes requests made by its half, the provider writes down
the answers of its half on fixtures, and each side judges what the other wrote. Then the
requester sends the agreed requests (PT=11), and the provider answers them with its real
half on the same fixtures. An agreement whose cases fail is used by neither side.

* `base`: the base of both roles: exchanges, faults, repairs, questions.
* `requester`: a channel on which our agent calls a peer.
* `provider`: a channel on which a peer calls our agent.
* `dialogue`: sends, timers and waits around the dialogue machine.
* `cases`: test cases of either role, and test requests.
* `examiner`: questions to the model about messages and test cases.
* `repairer`: new revisions of a half, checked and stored.
* `exchanges`: the last messages of a channel.
* `natural`: questions and answers in words (PT=10).
"""

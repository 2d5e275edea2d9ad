"""Channels that are bound to a negotiated protocol, in both roles.

The requester sends what its half encoded, and its half decodes the answers. The
provider judges each request by the document, runs its half on it, and makes the calls
of capabilities that the half asks for. A dialogue beside the calls (PT=00) carries test
cases, reports of errors and questions.

`negotiation.exchange.dialogue.repairs` explains how repairs work, and
`negotiation.cases` how test cases do.

* `base`: the base of both roles: exchanges, faults, repairs, questions.
* `requester`: a channel on which our agent calls a peer.
* `provider`: a channel on which a peer calls our agent.
* `dialogue`: sends, timers and waits around the dialogue machine.
* `cases`: test cases of either role, and test requests.
* `examiner`: questions to the model about messages and test cases.
* `repairer`: new revisions of a half, checked and stored.
* `exchanges`: the last messages of a channel.
* `waiting`: calls of ours that wait for their answers, and their deadlines.
* `natural`: questions and answers in words (PT=10).
* `work`: deadlines, signs of work, cancelling, and the fetch of answers after a lost
  link.
* `kept_answers`: answers that a peer may fetch after a lost link, within limits; pure.
* `signs`: Signs that a peer gives of its work on a call of ours, before the answer.
* `updates`: Updates before an answer, on a channel with a negotiated protocol (WIRE).
* `verification`: Test requests of ours to a peer, and the answers to them (PT=11).
"""

"""The messages of a negotiation: the machine, its shell and the talk afterwards.

Theory of operation
-------------------

A negotiation is a conversation about one text, the *candidate*. One side proposes it,
the other judges it, and the answer is `accepted`, `rejected`, or a whole new candidate.
At most ten candidates are on the table, counted over both sides. After `accepted` both
sides write code for the text and say so with `codeGeneration`; only when both have said
`generated` is the channel ready.

    requester  PROPOSE            provider  EXPECT_PROPOSAL
                  | proposal                    | candidate of the peer
                  v                             v
            EXPECT_ANSWER  ---- counter ---->  JUDGE
                  |        <--- counter -----   |
                  | accepted by the peer        | accepted by us
                  +----------> EXPECT_CODE <----+
                                   | both said generated
                                   v
                                 READY          (any state can end in FAILED)

`PROPOSE`, `JUDGE` and our part of `EXPECT_CODE` wait for our own side, the other states
for the peer. `reactions.REACTIONS` says for each state what a status of the peer means.

The machine (`machine`) is pure and thinks nothing itself. What needs a mind leaves as
an event and comes back as a call: `NeedProposal` and `proposal_ready`, `NeedVerdict`
and `verdict_ready`, `NeedModule` and `module_ready`. `mind_failed` and `module_failed`
tell that no answer can be had. The shell, `negotiator`, runs these as tasks and feeds
their results; it also prepares code ahead: `module_ready` is allowed while we still
judge, so that `accepted` and `generated` leave together and a half that cannot be
written is a plain refusal.

Numbers. `sequenceId` is one counter for both directions (`sequence`), opened with 0.
A wrong number ends the negotiation, except for the habits of the official SDK: it opens
with 1, answers 2 to our 0, rejects with any number, and repeats a verdict once with its
old number. That repetition (`Reaction.CONFIRM`) is never answered, or two such peers
would confirm for ever.

Texts. The agreed text is the candidate on the table, byte for byte. A peer's
`accepted` may leave it out or repeat it; another text is no acceptance. Our own
`accepted` carries it whole, since the SDK hashes what it receives.

Time. Each state has a wait (`waits.wait_of`), and the whole has one too. A deadline
that has passed is looked at before each input, so that a late message cannot be acted
on just because a timer has not fired yet.

Questions in words (ANP-64) work meanwhile when both sides have them; test cases and
repairs belong to the time after the agreement, to `dialogue`, and are only counted here
(ANP-Q17).

Endings. A failure on our side, and an error of the peer in the protocol, go through
`_fail`: the peer is told in the form that fits the state (`rejected`, or
`codeGeneration: error` once agreed), and sees a fixed phrase where the true reason is
private. What the peer ended itself goes to `_end` without a word. Either way exactly
one `NegotiationFailed` follows. A message that is merely of no use is counted and
dropped, up to a limit. The good end is one `Agreed`.
"""

"""Minds that decide in negotiations, and the money they may spend.

* `minds`: chooses the mind for a negotiation and the account that pays for it.
* `models`: makes the model from the owner's `[llm]` and `[budget]`.
* `accounts`: accounts of a day and the ledger of calls to a model; messages, rounds and
  model calls that add up.
* `afterwards`: minds for repairs, questions and doubts after an agreement.
* `spend`: the view of what was spent, by day, account, peer and step.
* `remembered`: a mind that remembers its refusals, so that the same one is not paid for
  twice.
* `templates`: Templates of our needs in words, kept for each peer.
"""

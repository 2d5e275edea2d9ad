"""The mind that works from JSON Schemas alone, without a model.

* `rules`: proposes, judges and writes.
* `choice`: the capability, or the chain of several, that a candidate means.
* `fit`: tells whether a document serves, and how values cross.
* `halves`: writes the source of a half.
* `plan_run`: runs a half as the plan from which its source was written.
* `judge_source`: source of the function that judges a result of which the capability
  promises little.
* `literals`: source text of plain values: the only form in which foreign data enters a
  half.
* `names`: names and words in requirements: what is named there, and what comes near to
  it.
* `claims`: Words of a requirement that a capability has to keep, as far as rules can
  tell.
* `formats`: Formats of messages that a requirement insists on, as far as plain words
  tell.
* `templates`: Needs in words as templates: what differs from call to call becomes an
  argument.
* `message_source`: source lines that build and read one message of a document.
"""

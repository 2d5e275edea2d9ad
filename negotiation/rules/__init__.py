"""The mind that works from JSON Schemas alone, without a model.

* `rules`: proposes, judges and writes.
* `choice`: the capability that a candidate means.
* `names`: names of capabilities as they stand in texts.
* `chains`: several capabilities in a row.
* `fit`: tells whether a document serves, and how values cross.
* `halves`: writes the source of a half.
"""

"""The steps of a negotiation as questions to a model.

* `propose`: the first document for a need.
* `options`: proposals that offer several options (ANP-4).
* `base`: candidates that build on a protocol we hold (ANP-26).
* `offer`: the capabilities that serve a candidate, and the mapping.
* `reply`: a document that is not in the need's own terms.
* `codecs`: the code for bytes that are not JSON.
* `examine`: doubts about messages, cases and faults, beyond schemas.
* `answer`: questions and requests of a peer in words.
* `phrases`: the common parts of prompts.
"""

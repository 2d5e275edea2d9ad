"""The steps of a negotiation as questions to a model.

* `propose`: the first document for a need.
* `options`: proposals that offer several options (ANP-4).
* `base`: candidates that build on a protocol we hold (ANP-26).
* `offer`: which capabilities serve a candidate, and how.
* `reply`: a document that is not in the need's own terms.
* `codecs`: the code for bytes that are not JSON.
* `examine`: what schemas cannot tell about messages, cases and faults.
* `answer`: questions and requests of a peer in words.
* `phrases`: the common parts of prompts.
"""

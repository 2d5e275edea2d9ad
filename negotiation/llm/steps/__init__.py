"""The steps of a negotiation as questions to a model.

* `propose`: the first document for a need.
* `advice`: the questions in which the owner's hints stand; the question for the values
  in a task's words, which become arguments.
* `offer`: the capabilities that serve a candidate, and the mapping.
* `reply`: a document that is not in the need's own terms.
* `phrases`: the common parts of prompts, and codecs for bytes that are not JSON.
* `candidates`: changes of a protocol that we hold (ANP-26), and options (ANP-4).
* `plan_reader`: reads the calls and conversions of an answer into the parts of a plan.
"""

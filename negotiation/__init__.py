"""The meta-protocol: how two agents come to a common protocol, test it and repair it.

* `errors`: the errors of the package, one class for each reaction.
* `long_texts`: long texts in JSON, without a second copy of them.
* `strict_json`: JSON as RFC 8259 has it, within limits, and in canonical form.
* `messages`: the meta messages, parsed and rendered (ANP-16 to ANP-69).
* `need`: needs, capabilities, roles and the key of a need.
* `mind`: the interfaces of minds and of the checks of halves.
* `transcript`: the messages of a negotiation as they were sent.
* `natural`: the Markdown of natural language between agents (PT=10).
* `schema`: JSON Schemas and values: read, compared, mapped and sampled.
* `document`: the agreed text: read and written.
* `rules`: the mind that needs no model.
* `llm`: the mind that asks a model.
* `trial`: the check of a half before it is used.
* `exchange`: the negotiation itself, and the dialogue after it.
* `cases`: test cases.
* `consensus`: protocols that are known by a URI.
* `python_source`: text of Python taken apart, never run.
* `late_patterns`: patterns of our own that are compiled when they are first used.
"""

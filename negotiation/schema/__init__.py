"""JSON Schemas and values: read, compared, mapped and sampled.

* `intake`: schemas from outside: counted and cleaned.
* `keywords`: the keywords that are known, and their right form.
* `inline`: replaces each `$ref`, within a budget.
* `unions`: takes `anyOf`, `oneOf` and lists of types apart.
* `values`: tells whether a value meets a schema, by counting only.
* `samples`: sample values of a schema, always the same.
* `mapping`: finds how values of one schema become values of another.
* `plan`: such a mapping as plain data.
* `reasons`: reasons why one schema does not fit another.
"""

"""JSON Schemas and values: read, compared, mapped and sampled.

* `intake`: schemas from outside: counted, cleaned, and freed of `$ref`.
* `keywords`: the keywords that are known, and their right form.
* `values`: tells whether a value meets a schema, by counting only; splits unions.
* `texts`: makes different valid texts for a format or a simple pattern; runs no
  pattern.
* `variants`: values that differ from another one in a single place, still valid by
  counting.
* `samples`: sample values of a schema, always the same.
* `mapping`: finds how values of one schema become values of another.
* `plan`: such a mapping as plain data, or the reasons why there is none.
* `units`: units of numbers, as far as names, descriptions and words state them.
* `unit_names`: the names and symbols of units, each with what it may mean.
* `measures`: adds the conversions of units to a mapping.
* `narrow`: the output that a document needs, where the capability's schema promises
  less.
* `objects`: compares two schemas of objects, property by property.
* `terms`: the terms under which schemas are compared: what may be lost, what must be
  sure.
"""

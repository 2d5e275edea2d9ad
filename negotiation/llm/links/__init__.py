"""Links from values to values, and the source text that is rendered from them.

* `spots`: the places of a schema, each with a name.
* `conversions`: the ways in which one value becomes another.
* `ways`: the words for a prompt about them.
* `trees`: puts links together into a whole value.
* `pure_source`: names that source of a model must not use.
* `claims`: words of a requirement that a plan has to keep.
* `plans`: links as a model writes them, and the plan of a half.
* `frames`: the purpose of message fields where rules cannot tell it.
* `halves`: writes a half from a plan.
* `source`: writes how a value is made, as lines of a function.
* `call_lines`: Writes the capability calls of a provider half, and what is made of
  their outputs.
* `functions`: Fixed functions of halves, of which each half contains those it uses.
* `shapes`: Shapes of calls besides one after the other: loops, choices, pages and
  joins.
* `uses`: The places that conversions read, and those that they leave out.
"""

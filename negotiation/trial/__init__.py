"""The check that every module half passes before it is used.

* `acceptance`: checks one half, whatever its role; asks a mind for a better one.
* `trial`: the common part of both trials.
* `worked`: the trial of halves whose bytes are not JSON, by the worked examples.
* `module_examples`: example texts that a half brings along.
* `variation`: the faults of a conversion that show when its values are varied one at a
  time.
* `requester`: the trial of a requester half.
* `provider`: the trial of a provider half.
* `module_shapes`: The shapes of a provider half's calls, told in its source for its own
  check.
* `shape_checks`: Checks of loops, choices and joins of a provider half.
* `stand_ins`: Outputs that stand in for capabilities while a half is tried.
* `open_maps`: Names that a half looks up in a map whose names no schema lists.
"""

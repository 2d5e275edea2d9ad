"""The configuration: its sections, where it is read from, and look-ups in it.

* `settings`: the sections, with types, defaults and meanings; the settings of the
  listener for updates of callback agents.
* `interaction`: the settings of sessions and tasks.
* `setting_types`: the types of settings, and the base of every section.
* `load`: reads files, environment and flags into one configuration.
* `schema`: the JSON Schema and the default file, made from the settings.
* `live`: tells which changed settings take effect at once.
* `lookup`: the needs and peers that the owner's words name.
* `offers`: the offers and limits that follow for the wire.
* `entries`: what the owner may write several times: `[[need]]` and `[[peer]]`.
* `otel`: The settings of traces.
* `a2a`: The owner's settings of the A2A face.
* `registry`: the owner's settings of registries.
* `groups`: The settings of groups.
"""

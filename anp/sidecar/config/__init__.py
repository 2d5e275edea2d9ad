"""The configuration: its sections, where it is read from, and its meaning.

* `settings`: the sections, with types, defaults and meanings.
* `model_settings`: the sections about models and money.
* `operation_settings`: the sections about operation.
* `load`: reads files, environment and flags into one configuration.
* `schema`: the JSON Schema of the configuration.
* `live`: tells which changed settings take effect at once.
* `meaning`: the needs and peers that the owner's words name.
* `offers`: the offers and limits that follow for the wire.
"""

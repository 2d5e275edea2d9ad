"""Attachments over HTTP: OpenAPI services, declared operations, callbacks.

* `remote`: the common part of attachments over HTTP: life, health, calls.
* `endpoint`: one HTTP server of the owner: what is sent, how much is read.
* `answers`: the head and the body of an answer.
* `streams`: bodies that come event by event or line by line.
* `results`: answers as results: whole, streamed, or to be fetched later.
* `service`: the kind `http`: a service described by OpenAPI or by its owner.
* `openapi`: reads an OpenAPI document; its operations become capabilities.
* `openapi_schema`: schemas of an OpenAPI document as plain JSON Schema.
* `operations`: one call of a service: where each argument goes.
* `declared`: capabilities that the owner describes.
* `callback`: the kind `callback`: an agent that takes calls at a URL.
* `bodies`: Bodies with files: bytes as they are, and forms of several parts. Pure.
* `updates`: The calls about which agents at a URL may send updates, each by its own
  token.
"""

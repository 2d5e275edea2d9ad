"""The document that two agents agree on, read and written.

* `reader`: reads a candidate: its schemas of request and response.
* `renderer`: writes our documents as deterministic Markdown.
* `shape`: a document once it is read, and its hash.
* `markdown`: the little Markdown that is understood, in linear time.
* `examples`: the worked examples of a document whose bytes are not JSON.
* `layout`: the purpose of each field: correlation, outcome, values.
* `fields`: the fields of a message, sorted by purpose; success and failure.
* `message_judge`: validates the bytes of a message against the document.
* `prose`: the words of a document about its blocks, its encoding and its base.
"""

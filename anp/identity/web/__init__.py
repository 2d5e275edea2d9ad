"""DIDs on the web: their documents, proofs, guarded fetches and pinned keys.

* `documents`: DID documents: read, checked and made.
* `data_integrity`: proofs inside a document, over canonical JSON.
* `own_document`: our own `did:wba` and its document.
* `guard`: decides which URLs and addresses may be fetched for a peer.
* `fetcher`: the only place that fetches a URL which a peer named; loads the HTTP
  library beside the event loop.
* `resolver`: resolves a DID over https and remembers the document for a while.
* `key_pins`: decides about a DID that comes with another key than before.
"""

"""DIDs: made, stored, resolved and verified; the address book.

* `keys`: the daemon's private key in a file of its owner.
* `public_keys`: public keys as DID documents write them.
* `dids`: the DIDs of a P-256 key: `did:key` and `did:all`.
* `ripemd`: RIPEMD-160, which the address of a `did:all` needs.
* `web_dids`: the spelling of `did:web` and `did:wba`, and where their documents are.
* `web`: documents, proofs, guarded fetches and pinned keys of DIDs on the web.
* `resolver`: tells whether a DID owns the key that signed a hello.
* `address`: a peer as people write it: a name, a DID, a URL, or both.
* `book`: the address book, and who was met first at an address.
* `well_known`: the document `/.well-known/anp` at the port of a daemon.
* `base58`: Base58 with Bitcoin's alphabet, as `did:key` and `did:all` write bytes.
"""

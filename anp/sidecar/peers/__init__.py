"""Other daemons: their identities, addresses, permissions and published lists.

* `policy`: the owner's policy: which peers may open channels to us.
* `finder`: finds the DID and the address of a peer that a caller named.
* `directory`: everybody the daemon knows, with names, addresses and last contact.
* `contacts`: why peers could not be reached at the last try.
* `pins`: the pins of URLs and keys, as the store keeps them.
* `lists`: the lists of protocols that peers publish, fetched and remembered.
* `web_identity`: our own `did:wba` and the documents that our port serves for it.
* `figures`: the measures of our calls and tasks at peers, and the order they give.
"""

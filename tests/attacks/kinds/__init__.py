"""The attacks, by what they attack with.

* `base`: the base of every attack: connections from other addresses, bound in number.
* `silence`: attacks that connect and then say nothing, or nearly nothing.
* `faces`: attacks on plain HTTP, of the peers' port and of the local API.
* `handshakes`: attacks with hellos.
* `floods`: attacks with many or large messages on open channels.
* `bargains`: attacks with negotiations.
* `usage`: attacks over agreements: calls, repairs, test runs, words.
* `catalogue`: every attack by its name.
"""

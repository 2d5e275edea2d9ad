"""DIDs: made, stored, resolved and verified; the address book."""

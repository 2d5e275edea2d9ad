"""The commands about negotiations and about the protocols that came of them."""

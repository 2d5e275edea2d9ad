"""The messages of a negotiation: the machine, its shell and the later dialogue."""

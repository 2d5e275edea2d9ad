"""Consensus protocols written by hand, as pure objects without any I/O."""

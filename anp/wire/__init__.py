"""Bytes on the wire: frames, messages, handshake, keys. Pure."""

"""The pure core of links: channels, handshakes, keys and limits, without any I/O."""

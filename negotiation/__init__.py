"""The meta-protocol: messages, machine, minds, documents and module halves."""

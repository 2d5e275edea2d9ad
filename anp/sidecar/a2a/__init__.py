"""The A2A interface of the daemon; nothing is here yet."""

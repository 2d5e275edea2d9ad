"""The local agent's capabilities: attached, exposed and called."""

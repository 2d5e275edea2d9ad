"""A2A agents as attachments."""

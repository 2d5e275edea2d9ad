"""The daemon: calls out, calls in, attachments and the local API."""

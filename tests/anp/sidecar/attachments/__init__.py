"""Attachments over HTTP, and their pure parts."""

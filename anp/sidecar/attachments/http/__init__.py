"""Attachments over HTTP: OpenAPI services, declared operations, callbacks."""

"""The store on a Redis or Valkey server."""

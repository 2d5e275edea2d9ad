"""JSON Schemas and values: read, compared, mapped and sampled."""

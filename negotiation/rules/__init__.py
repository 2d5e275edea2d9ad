"""The mind that works from JSON Schemas alone, without a model."""

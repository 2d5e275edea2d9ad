"""Agents of the scenes: what the provider's owner attached, as plain functions."""

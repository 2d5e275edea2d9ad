"""Runs generated code, and checks values against schemas, in other processes."""

"""Consensus protocols: known by URI, kept in a folder, spoken on channels."""

"""Minds that decide in negotiations, and the money they may spend."""

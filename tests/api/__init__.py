"""Checks of the local API that need an environment of their own."""

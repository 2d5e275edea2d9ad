"""Tests of the package `anp.interaction.groups`."""

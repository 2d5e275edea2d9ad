"""Tests of the package `anp.sidecar.groups`."""

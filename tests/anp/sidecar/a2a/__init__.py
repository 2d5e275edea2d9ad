"""Tests of the A2A face without a socket."""

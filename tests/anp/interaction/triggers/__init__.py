"""Tests of subscriptions without I/O."""

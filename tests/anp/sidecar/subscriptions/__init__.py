"""Tests of subscriptions in the daemon."""

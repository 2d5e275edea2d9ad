"""Measurements that print ratios of one run."""

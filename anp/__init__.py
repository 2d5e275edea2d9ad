"""The wire, the peers, the daemon and its faces."""

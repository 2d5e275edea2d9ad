"""Links and channels over WebSockets."""

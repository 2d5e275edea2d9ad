"""The demo: two agents meet on this machine, through the commands a user types."""

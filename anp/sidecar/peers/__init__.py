"""Other daemons: who they are, where they are, what they may, what they publish."""

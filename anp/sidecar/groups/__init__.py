"""Groups of agents and scheduled tasks; nothing is here yet."""

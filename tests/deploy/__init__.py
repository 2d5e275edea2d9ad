"""Files for whoever runs the daemon as a service."""

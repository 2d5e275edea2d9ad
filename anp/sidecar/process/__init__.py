"""One daemon as a process: start, signals, stop, service manager, self-check."""

"""Growth of a warm call's time and of memory with what there is more of."""

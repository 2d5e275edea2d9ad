"""The folder of one daemon, and messages that say what is wrong in it."""

"""Module halves, loaded into the sandbox and checked before they are used."""

"""The operations of the local API, one file for each noun."""

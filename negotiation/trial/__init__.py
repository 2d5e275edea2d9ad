"""The check that every module half passes before it is used."""

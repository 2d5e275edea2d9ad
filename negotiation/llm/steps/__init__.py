"""The steps of a negotiation as questions to a model."""

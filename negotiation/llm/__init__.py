"""The language model: how it is asked, what its answers are, what it may cost."""

"""One question to a language model: its text, its answer, its cost."""

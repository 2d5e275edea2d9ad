"""The language model: questions to it, its answers, and their cost."""

"""Links from values to values, and the source text that is rendered from them."""

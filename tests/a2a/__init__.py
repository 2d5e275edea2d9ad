"""A2A agents by the book, driven through two daemons to their end."""

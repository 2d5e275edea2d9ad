"""The owner's Python functions as an attachment, in a process of their own."""

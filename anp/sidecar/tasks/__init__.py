"""Tasks that last, with their inbox, outbox and files; nothing is here yet."""

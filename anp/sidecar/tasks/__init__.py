"""Tasks that last, with their inbox, outbox and files; nothing is here yet.

* `sessions`: The sessions of this daemon: their machines, restored from the store and
  kept there.
"""

"""The store on a Redis or Valkey server.

* `place`: the URL of the server, and how to show it without its password.
* `server`: the connection, what the server has to be, its failures.
* `database`: transactions without locks, and outages survived; mail between daemons
  that use the same rows: a stream on the server for each box.
* `rows`: the rows as one transaction sees them, and rows read lately.
"""

"""The local HTTP API and the dashboard.

* `doors`: serves the API on a Unix socket and on loopback.
* `app`: the API as a web application, loaded after the start; the ways of requests to
  their operations, without a look at each of the routes.
* `table`: the form of an operation, from which routes and OpenAPI follow.
* `operations`: the operations, one file for each noun.
* `openapi`: the OpenAPI document.
* `guard`: decides who may use the API, and with which scope.
* `connections`: shares and time limits of connections.
* `plain_http`: requests in the usual form, read and answered with few steps.
* `requests`: parts of requests that several operations share, such as pages of lists.
* `answers`: dataclasses as JSON.
* `problems`: errors as problem documents, with their HTTP status.
* `event_stream`: events as server-sent events.
* `dashboard`: the pages for the owner's browser.
* `updates`: The listener for updates of agents that take calls at a URL (kind
  `callback`).
* `servers`: Web servers of the daemon, each on a listener of its own.
* `tokenless`: Requests without credentials: their pace, and how connections become
  known.
"""

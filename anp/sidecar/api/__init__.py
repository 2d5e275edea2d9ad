"""The local HTTP API and the dashboard.

* `app`: serves the API on a Unix socket and on loopback.
* `table`: the form of an operation, from which routes and OpenAPI follow.
* `operations`: the operations, one file for each noun.
* `openapi`: the OpenAPI document.
* `guard`: decides who may use the API.
* `bodies`: the bodies of requests.
* `answers`: the shapes of answers.
* `views`: agents, calls and peers as JSON.
* `pages`: long lists, page by page.
* `problems`: errors as problem documents, with their HTTP status.
* `event_stream`: events as server-sent events.
* `dashboard`: the pages for the owner's browser.
"""

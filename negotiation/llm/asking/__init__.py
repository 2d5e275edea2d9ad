"""One question to a language model: its text, its answer, its cost.

* `questions`: the question, made from a prompt file, and the interface of a model.
* `answers`: asks for the form of an answer, and finds the JSON in it.
* `attempts`: decides which request comes next, and when to stop.
* `wire`: sends one HTTP request to a server.
* `endpoint`: an OpenAI-compatible server as a model.
* `budget`: reserves money before a call and settles it afterwards.
* `requests`: one request to a model's server, its cost and its untrusted reply.
"""

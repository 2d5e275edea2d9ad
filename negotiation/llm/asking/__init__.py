"""One question to a language model: its text, its answer, its cost.

* `prompts`: fills the prompt files with data that cannot leave its fence.
* `questions`: the question, and the interface of a model.
* `forms`: schemas of answers in the form that strict servers take.
* `answers`: asks for the form of an answer, and finds the JSON in it.
* `attempts`: decides which request comes next, and when to stop.
* `replies`: reads the reply of a server; every byte is untrusted.
* `wire`: sends one HTTP request to a server.
* `endpoint`: an OpenAI-compatible server as a model.
* `budget`: reserves money before a call and settles it afterwards.
* `meter`: counts the calls between a question and the network.
"""

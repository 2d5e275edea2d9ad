"""The programs of docs/recipes/frameworks.md, with a model that a test plays.

* `model`: answers as a model of OpenAI's API would that calls one tool.
* `test_frameworks`: each program as it stands in the document (`make test-recipes`).
"""

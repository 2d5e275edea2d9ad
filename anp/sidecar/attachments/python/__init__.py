"""The owner's Python functions as an attachment, in a process of their own.

* `child`: starts the owner's interpreter and talks to it.
* `runner`: runs the functions inside the owner's interpreter.
* `pydantic_models`: models of pydantic among the types of these functions.
* `function_call`: one call of an attached function, and the way of what it says before
  its answer.
"""

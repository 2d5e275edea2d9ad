"""The mind that asks a language model: its questions, its answers, its cost.

* `mind`: asks the model for each step, and decides in code.
* `auto`: asks the rules first and the model only for the rest.
* `assess`: asks about words, messages, test cases and faults.
* `memory`: the results of a mind and their keys, so that nothing is asked twice.
* `verdicts`: the words of verdicts, with their reasons.
* `asking`: one question: its text, its answer, its cost.
* `links`: links from values to values, and the source made from them.
* `steps`: the steps of a negotiation as questions.
"""

"""The talk of two sides after an agreement: test cases, repairs and questions.

* `machine`: everything of one channel as one pure object, for both roles.
* `case_turns`: the turns in which test cases are agreed (ANP-48 to ANP-53).
* `repairs`: reports of errors and their repairs, with the theory of operation.
* `questions`: questions in words, and their answers (ANP-64 to ANP-69).
* `reports`: reports of errors: their text, and the side that an error belongs to.
"""

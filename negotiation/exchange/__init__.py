"""The messages of a negotiation: the machine, its shell and the talk afterwards.

* `machine`: the pure machine of one negotiation, for both roles.
* `reactions`: the states: the meaning of the peer's status, and their time limits.
* `limits`: limits of time, number and length, and the fixed phrases.
* `events`: the events and questions of both machines, and the answers to them.
* `speaker`: the common part of both machines, and the counter `sequenceId`.
* `negotiator`: the shell: carries questions to the mind and answers back.
* `dialogue`: the talk of two sides after an agreement.
"""

"""The messages of a negotiation: the machine, its shell and the talk afterwards.

* `machine`: the pure machine of one negotiation, for both roles.
* `reactions`: the table: what a status of the peer means in each state.
* `sequence`: the shared counter `sequenceId` (ANP-21, ANP-22).
* `waits`: the wait of each state, and the side it waits for.
* `limits`: limits on time, rounds and useless messages.
* `events`: the events and questions of the machine for its shell.
* `speaker`: the common part of machines that send meta messages.
* `wording`: the fixed phrases that a peer may read.
* `negotiator`: the shell: carries questions to the mind and answers back.
* `preparation`: lets a mind write a half until it passes its checks.
* `dialogue`: the talk of two sides after an agreement.
"""

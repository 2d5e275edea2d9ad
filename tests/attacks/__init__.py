"""Attacks on a daemon, and what good peers see meanwhile: `python -m tests.attacks`.

* `__main__`: the arguments, the run and the exit code.
* `measure`: one attack: quiet time, attack, quiet time, on a fresh daemon.
* `table`: ratios, the pass rule and the printed table.
* `victim`: the daemon under attack as a process, and its memory, files and log.
* `children`: processes that take one order a line and answer with one line.
* `good`: the process of the good peers, the listed one and new ones.
* `newcomer`: a new good peer's way from the first byte to its first answer.
* `attacker`: the process that carries out one attack.
* `kinds`: the attacks themselves.
"""

"""Attacks on a model that obeys every text it reads, over two real daemons.

`attack` is an attack and its verdict, `__main__` prints the table, `kinds` has the
attacks, `model` is the obedient model, `orders` are the commands that it looks for,
`private` has the private texts and finds them in any form, `scene` are the two daemons,
and `wire` records what they send.
"""

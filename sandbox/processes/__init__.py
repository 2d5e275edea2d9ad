"""The fork server and the processes of workers.

* `forkserver`: forks workers and reports their end, with the theory of operation.
* `process`: the daemon's side of the fork server; everything read is hostile.
* `control`: messages between the daemon and the fork server.
* `conversation`: one question to a worker, one answer, nothing else.
* `ending`: the end of a worker, and its meaning for the call.
* `preload`: loads what workers need before they are locked.
* `self_test`: shows that the lock holds on this machine.
"""

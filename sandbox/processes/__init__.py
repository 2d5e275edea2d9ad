"""The fork server and the processes of workers.

* `forkserver`: forks workers and reports their end, with the theory of operation.
* `launch`: starts the fork server's process, also ahead of its daemon; messages between
  the daemon and the fork server.
* `process`: the daemon's side of the fork server; everything read is hostile.
* `preload`: loads what workers need before they are locked.
* `self_test`: shows that the lock holds on this machine.
* `worker_process`: one worker as the daemon sees it: channel, calls and end.
"""

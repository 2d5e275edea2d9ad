"""One daemon as a process: start, signals, stop, service manager, self-check.

* `run`: one daemon from its start to the signal that ends it; asks the C library to
  keep some of the memory that is freed; talks to the service manager; the signals of
  the system: stop, stop at once, reload; a graceful stop that waits for work in
  progress.
* `doctor`: checks what works on this machine, and says how to mend the rest; asks the
  system about its clock.
* `a2a_face`: Starts the A2A face of a daemon, if its owner wants one; the guard of the
  A2A face: pages of others, and the pace of callers without a token.
"""

"""The loops of work: which tests run quickly, and what a run has to have shown.

- `quick`: the folders of pure tests, and the run of `make quick` over them;
- `guard`: raises where a test of that run opens a socket or starts a process;
- `shown`: fails a run of everything in which a clause was not shown.
"""

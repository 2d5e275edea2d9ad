"""One daemon for a quarter of an hour, with all that happens to it: `make soak`.

Fifty peers come and go and call it over more than two hundred agreements, while it is
reloaded and killed, while its attachments come, go and are killed, and while the
processes of its peers are killed. What every caller was told is compared with what the
capabilities themselves wrote down.

* `__main__`: the arguments, the run and the exit code.
* `provider`: the daemon under test, its capabilities, and where they write.
* `fleet`: a process with some of the peers, which call and write down the answers.
* `trouble`: what happens to the daemon, its attachments and its peers, and when.
* `samples`: memory, files, workers, rows and log over time, and the rule of flatness.
* `ledger`: what was told compared with what was written.
"""

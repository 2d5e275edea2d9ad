"""The command line: parses, calls the local API, prints.

* `app`: the root of all commands, and the global options.
* `client`: asks the daemon of a home.
* `output`: prints for people and for programs, and turns errors into exit codes.
* `logs`: the form of log lines.
* `commands`: the commands, one file for each group.
* `agreements`: the commands about negotiations and protocols.
* `demo`: the demo of two agents.
"""

"""The command line: parses, calls the local API, prints.

* `app`: the root of all commands, and the global options.
* `client`: finds home and configuration, and asks the daemon.
* `options`: options of several commands, and the reading of input.
* `output`: prints for people and for programs, and turns errors into exit codes.
* `logs`: the form of log lines.
* `commands`: the commands, one file for each group.
* `demo`: the demo of two agents.
"""

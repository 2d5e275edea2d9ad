"""The command line: parses, calls the local API, prints.

* `app`: the root of all commands, and the global options.
* `client`: finds home and configuration, and asks the daemon; HTTP to a daemon over its
  Unix socket, with the standard library alone.
* `options`: options of several commands, and the reading of input.
* `output`: prints for people and for programs, and turns errors into exit codes.
* `logs`: the form of log lines.
* `commands`: the commands, one file for each group.
* `demo`: the demo of two agents.
* `call`: The command `call` itself, and a short way to it for the usual command lines.
* `input`: Reads the input that an option names: a file, standard input, or JSON itself.
* `completion`: completion of peers, capabilities and ids in a shell; installs the
  script with which a shell completes words of `anpd`.
* `questions`: the questions of `anpd init`.
* `words`: The first words of a command line, and the file that each is loaded from.
* `grammar`: Commands made from the signatures of functions, over click.
* `examples`: An example of each command, which its help shows at the end.
"""

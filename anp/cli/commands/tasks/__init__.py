"""The commands for work that lasts, and the conversations that it belongs to.

* `tasks`: `tasks start`, `list`, `show`, `watch`, `send`, `cancel`.
* `sessions`: `sessions list`, `show`, `export`, `close`, `delete`.
* `subscriptions`: `subscriptions create`, `list`, `show`, `cancel`, `runs`, `watch`,
  `emit`.
* `watch`: a task in a terminal: its text as it streams, progress, questions and end;
  files of tasks in a folder of the user's, under the names that peers gave.
"""

"""A2A agents as attachments.

* `agent`: an agent by its card; its skills become capabilities; the largest answer, and
  the largest event of a stream.
* `exchange`: one call: its messages, what the agent says, and its questions.
* `parts`: parts of A2A and parts of a conversation.
* `tasks`: collects what an agent has said about one task.
* `sign_in`: Tokens of OAuth 2 for an agent whose card wants them (A2A-9, A2A-21).
"""

"""A2A agents as attachments.

* `agent`: an agent by its card; its skills become capabilities.
* `tasks`: collects what an agent has said about one task.
"""

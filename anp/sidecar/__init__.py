"""The daemon, in rooms; the files beside them build, wire and watch it.

* `daemon`: has every part, starts them, and ends them.
* `wiring`: builds the parts, group by group, from home and configuration.
* `operation`: reads the owner's files again and puts into effect what can be.
* `health`: tells whether the daemon can do its work.
* `gauges`: figures that are read when somebody asks.
* `home`: the folder of one daemon.
* `config`: the settings.
* `telemetry`: counts, spans and work in progress.
* `attachments`: the owner's tools, one kind each.
* `offer`: the capabilities that are exposed, and their calls.
* `peers`: other daemons: found, allowed, pinned.
* `minds`: minds and their budget.
* `halves`: halves loaded into the sandbox.
* `agreement`: negotiations and what is stored of them.
* `bound`: channels that have their protocol.
* `bundles`: agreements as files.
* `consensus`: protocols by URI.
* `calls`: calls out, and the acceptor of channels in.
* `library`: the owner's view of what was agreed.
* `api`: the local HTTP API and the dashboard.
* `mcp`: the server for MCP clients.
* `process`: start, signals, stop and self-check.
* `a2a`: A2A for callers, for local agents and over channels.
* `groups`: groups of agents: their hubs, and taking part in those of others.
* `tasks`: tasks that last, at peers and for peers.
* `discovery`: peers found by what they publish, and registries.
* `broadcast`: one message to many peers.
* `plans`: tasks of this daemon's own, whose parts are given to peers.
* `files`: Files of tasks, from disk to disk and never whole in memory.
* `subscriptions`: Subscriptions: tasks that times, events and places start (GBZ-63 to
  GBZ-66).
"""

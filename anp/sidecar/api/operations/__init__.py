"""The operations of the local API with their bodies and answers, one file a noun.

* `daemon`: the daemon itself: identity, health, metrics, events, costs, dashboard.
* `calls`: calls.
* `capabilities`: the capabilities of the local agent.
* `peers`: peers: known, allowed, blocked, asked.
* `negotiations`: negotiations and the owner's word about them.
* `protocols`: agreed protocols.
* `tasks`: tasks that last.
* `sessions`: the sessions that tasks belong to.
* `task_views`: sessions, tasks and their events as they are shown.
* `distribution`: protocols in bundles and under URIs.
* `files`: Files of tasks in the local API: uploaded before a task, and given out.
* `inbox`: The inbox in the local API: an agent reads its tasks there, and answers them.
* `peer_views`: Peers as the local API shows them, and the bodies of requests about
  them.
* `task_bodies`: The bodies of requests about tasks, and the contents that they carry.
* `subscriptions`: Subscriptions in the local API, and the events that the local agent
  tells.
* `groups`: Groups in the local API.
"""

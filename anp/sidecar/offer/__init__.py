"""The local agent's capabilities: attached, exposed and called.

* `exposure`: the capabilities that peers may see and use.
* `attached`: keeps the running attachments the same as the owner's files.
* `capability_calls`: calls a capability for a peer, with every check before and after.
* `gate`: decides about every call of a capability for a peer, whatever way it came.
* `ways`: the ways by which a peer can reach a capability, with the rule of each; pure.
* `call_times`: the time that a call may take, by the settings of the owner; pure.
* `task_arguments`: The arguments of a capability in the messages of a task. Pure.
"""

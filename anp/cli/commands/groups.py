"""groups: several agents that hear one another, in one order."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Annotated, Any

from click import Context

from anp.cli.client import client_of, segment
from anp.cli.grammar import Argument, Commands, Option
from anp.cli.options import Json
from anp.cli.output import Column, json_line, print_list, print_one, visible, when
from anp.errors import CallError, ErrorKind

groups_app = Commands(help="Groups of agents that hear one another in one order.")

GroupId = Annotated[str, Argument(metavar="GROUP", help="Id of the group.")]
Peer = Annotated[
    str, Argument(metavar="PEER", help="Name, DID, URL or URL#DID of a peer.")
]
Ticket = Annotated[
    str, Argument(metavar="TICKET", help="Id of the application; see `show`.")
]
Words = Annotated[str, Option("--text", help="Words for people.")]


def register(app: Commands) -> None:
    """Add the commands of this file."""
    app.add(groups_app, "groups")


@groups_app.command("create")
def create_group(
    context: Context,
    name: Annotated[str, Argument(help="Its name for people.")] = "",
    invite: Annotated[
        list[str] | None, Option(help="Invite this peer; may be repeated.")
    ] = None,
    admin: Annotated[list[str] | None, Option(help="DID that manages it, too.")] = None,
    hub: Annotated[
        str | None, Option(help="Peer that distributes its messages.")
    ] = None,
    seal: Annotated[
        bool | None,
        Option("--seal/--no-seal", help="The hub cannot read what is said."),
    ] = None,
    join: Annotated[str, Option(help="invite, apply, both or closed.")] = "invite",
    history: Annotated[
        str, Option(help="Events that a new member gets: none, all or a number.")
    ] = "none",
    max_members: Annotated[int, Option(help="Most members.")] = 64,
    rate: Annotated[
        int, Option(help="Messages of one member in a minute; 0: no limit.")
    ] = 600,
    as_json: Json = False,
) -> None:
    """Make a group."""
    if join not in ("invite", "apply", "both", "closed"):
        raise CallError(ErrorKind.USAGE, "--join is invite, apply, both or closed")
    if history not in ("none", "all") and not history.isdigit():
        raise CallError(ErrorKind.USAGE, "--history is none, all or a number")
    policy: dict[str, Any] = {
        "join": join,
        "history": int(history) if history.isdigit() else history,
        "max_members": max_members,
        "rate": rate,
    }
    body: dict[str, Any] = {"name": name, "policy": policy, "invite": invite or []}
    body |= {"admins": admin or [], "seal": seal} | ({"hub": hub} if hub else {})
    found = client_of(context).post("/v1/groups", body)
    print_one(found, [f"group {found['id']} is there"], as_json=as_json)


@groups_app.command("list")
def list_groups(context: Context, as_json: Json = False) -> None:
    """List the groups of this agent, invitations included."""
    client = client_of(context)
    found = client.get("/v1/groups")
    columns: dict[str, Column] = {
        "ID": "id",
        "NAME": lambda one: visible(one["name"]) or "-",
        "STATE": "state",
        "MEMBERS": lambda one: len(one["members"]),
        "EVENTS": "last",
        "HUB": lambda one: "this daemon" if one["is_hub"] else one["hub"],
        "WAITING": lambda one: len(one["waiting"]),
        "ALARMS": lambda one: len(_alarms(one)) if one["sealed"] else "-",
        "SETTINGS": _preset,
    }
    names = client.peer_names
    print_list(found, found["groups"], columns, as_json=as_json, names=names)


@groups_app.command("show")
def show_group(context: Context, group: GroupId, as_json: Json = False) -> None:
    """Show a group with its members, and what waits to be decided."""
    client = client_of(context)
    found = client.get(_path(group))
    named = _named({} if as_json else client.peer_names())
    invited = found["invitation"]
    told = [
        ("group", found["id"]),
        ("name", visible(found["name"])),
        ("state", found["state"]),
        ("hub", "this daemon" if found["is_hub"] else named(found["hub"])),
        ("owner", named(found["owner"])),
        ("members", [named(one["id"]) for one in found["members"]]),
        ("epoch", found["epoch"]),
        ("events", found["last"]),
        ("joined by", found["policy"]["join"]),
        (
            "waiting",
            [
                f"{one['kind']} {one['ticket']} of {named(one['peer'])}: "
                f"{visible(one['text'])}"
                for one in found["waiting"]
            ],
        ),
    ]
    if found["preset"] is not None:
        told.append(("by the settings", found["preset"]["members"]))
        told.append(("not in effect", found["preset"]["problems"]))
    if found["sealing"] is not None:
        told += _sealing(found["sealing"], named)
    if invited is not None:
        told.append(("invited by", named(invited["by"])))
        told.append(("words", visible(invited["text"])))
    print_one(found, told, as_json=as_json)


@groups_app.command("invite")
def invite(
    context: Context,
    group: GroupId,
    peer: Peer,
    text: Words = "",
    as_json: Json = False,
) -> None:
    """Invite a peer."""
    body = {"peer": peer, "text": text}
    found = client_of(context).post(f"{_path(group)}/invite", body)
    print_one(found, [f"{peer} is invited"], as_json=as_json)


@groups_app.command("accept")
def accept(context: Context, group: GroupId, as_json: Json = False) -> None:
    """Accept an invitation."""
    _do(context, group, "accept", as_json)


@groups_app.command("decline")
def decline(context: Context, group: GroupId, as_json: Json = False) -> None:
    """Refuse an invitation."""
    _do(context, group, "decline", as_json)


@groups_app.command("apply")
def apply(
    context: Context, hub: Peer, group: GroupId, text: Words = "", as_json: Json = False
) -> None:
    """Ask to join a group of others, whose hub is PEER."""
    body = {"hub": hub, "group": group, "text": text}
    found = client_of(context).post("/v1/groups/apply", body)
    print_one(found, [f"you are: {found['state']}"], as_json=as_json)


@groups_app.command("approve")
def approve(
    context: Context, group: GroupId, ticket: Ticket, as_json: Json = False
) -> None:
    """Let an applicant join."""
    _do(context, group, "approve", as_json, ticket=ticket)


@groups_app.command("deny")
def deny(
    context: Context,
    group: GroupId,
    ticket: Ticket,
    text: Words = "",
    as_json: Json = False,
) -> None:
    """Refuse an applicant."""
    _do(context, group, "deny", as_json, ticket=ticket, text=text)


@groups_app.command("leave")
def leave(context: Context, group: GroupId, as_json: Json = False) -> None:
    """Leave a group, or take back the application to join it."""
    _do(context, group, "leave", as_json)


@groups_app.command("remove")
def remove(
    context: Context,
    group: GroupId,
    member: Annotated[str, Argument(help="DID of the member.")],
    text: Words = "",
    as_json: Json = False,
) -> None:
    """Remove a member."""
    _do(context, group, "remove", as_json, member=member, text=text)


@groups_app.command("close")
def close(context: Context, group: GroupId, as_json: Json = False) -> None:
    """End a group."""
    _do(context, group, "close", as_json)


@groups_app.command("delete")
def delete(context: Context, group: GroupId, as_json: Json = False) -> None:
    """Delete what is kept here of a group that this agent is not in any more."""
    found = client_of(context).post(f"{_path(group)}/delete")
    print_one(found, [f"group {found['id']} is deleted here"], as_json=as_json)


@groups_app.command("post")
def post(
    context: Context,
    group: GroupId,
    text: Annotated[str, Argument(help="The message.")],
    as_json: Json = False,
) -> None:
    """Say something to all other members."""
    found = client_of(context).post(f"{_path(group)}/messages", {"text": text})
    number = found["number"]
    told = "it goes out when the hub is back" if number is None else f"number {number}"
    print_one(found, [told], as_json=as_json)


@groups_app.command("watch")
def watch(
    context: Context,
    group: GroupId,
    after: Annotated[int, Option(help="Only events after this number.")] = 0,
    as_json: Json = False,
) -> None:
    """Show what is said in a group, from the beginning on."""
    client = client_of(context)
    named = _named({} if as_json else client.peer_names())
    with contextlib.suppress(KeyboardInterrupt):
        for event in client.events(f"{_path(group)}/events", after=after):
            # Keys of a sealed group say nothing to people.
            if event and (as_json or event["data"]["proof"] != "keys"):
                print(json_line(event) if as_json else _line(event, named), flush=True)


def _alarms(found: dict[str, Any]) -> list[dict[str, Any]]:
    sealing = found["sealing"]
    return [] if sealing is None else list(sealing["alarms"])


def _preset(found: dict[str, Any]) -> str:
    preset = found["preset"]
    if preset is None:
        return "-"
    return "not in effect" if preset["problems"] else "follows"


def _sealing(
    sealing: dict[str, Any], named: Callable[[str], str]
) -> list[tuple[str, Any]]:
    members = [f"{named(did)} ({rank})" for did, rank in sealing["members"].items()]
    alarms = [
        f"{when(one['at'])} {one['code']} {named(one['by'])}: {visible(one['text'])}"
        for one in sealing["alarms"]
    ]
    return [("sealed for", members), ("alarms", alarms)]


def _named(names: dict[str, str]) -> Callable[[str], str]:
    """Return the function that gives a peer's name for its DID, where it has one."""
    return lambda did: names.get(did, did)


def _line(event: dict[str, Any], named: Callable[[str], str]) -> str:
    data = event["data"]
    proof = data["proof"]
    vouched = "" if proof in ("signed", "sealed") else f" [{proof}]"
    if proof == "locked":
        said = "(its sender has not given us the key yet)"
    elif "message" in data:
        parts = data["message"].get("parts", ())
        said = " ".join(
            visible(str(one.get("text", one.get("value", one["kind"]))))
            for one in parts
        )
    else:
        said = f"({event['type']})"
    return f"{event['number']} {when(event['at'])} {named(data['by'])}{vouched}: {said}"


def _path(group: str) -> str:
    return f"/v1/groups/{segment(group)}"


def _do(context: Context, group: str, act: str, as_json: bool, **body: str) -> None:
    found = client_of(context).post(f"{_path(group)}/{act}", dict(body))
    print_one(found, [f"group {group}: you are: {found['state']}"], as_json=as_json)

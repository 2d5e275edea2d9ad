"""Reads what callers of A2A 0.3 and 1.0 send (A2A-11 to A2A-13). Pure.

Everything is judged before anything is done; what does not fit is an `A2aError` with
the path of the place. A2aFields that a version does not name are ignored, as both say.
"""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from typing import Any, Final

from anp.interaction.elements import Part
from anp.protocols.a2a.objects import A2aMessage, ListParams, PushConfig, SendParams
from anp.protocols.a2a.words import A2aError, A2aFault, A2aVersion, read_state
from anp.protocols.timestamps import read_timestamp

MAX_ID: Final = 256
"Most characters of an id that a caller makes."

MAX_PARTS: Final = 1_000
"Most parts of a message."

MAX_NAME: Final = 200
"Most characters of a file's name."

MEDIA_TYPE: Final = re.compile(r"[A-Za-z0-9!#$&^_.+*-]+/[A-Za-z0-9!#$&^_.+*-]+(;.*)?")
"A media type, roughly."

_FOLDERS: Final = re.compile(r".*[/\\]", re.DOTALL)
BINARY: Final = "application/octet-stream"


class A2aFields:
    """A JSON object of a caller, with its path for errors."""

    def __init__(self, value: Any, path: str) -> None:
        """Take a value; `A2aError` if it is no object."""
        if not isinstance(value, dict):
            raise wrong(path, "must be an object")
        self._value: dict[str, Any] = value
        self.path = path

    @property
    def whole(self) -> dict[str, Any]:
        """The object itself."""
        return self._value

    def __contains__(self, name: str) -> bool:
        # JSON of protobuf writes null for what is not set.
        return self._value.get(name) is not None

    def has(self, name: str) -> bool:
        """Return whether a field is there, with null as well."""
        return name in self._value

    def at(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def raw(self, name: str) -> Any:
        """Return a field as it is, None if it is not there."""
        return self._value.get(name)

    def text(self, name: str, *, most: int = MAX_ID, needed: bool = False) -> str:
        """Return a text; empty if it may be absent and is."""
        value = self._value.get(name)
        if value is None and not needed:
            return ""
        if not isinstance(value, str) or (needed and not value):
            raise wrong(self.at(name), "must be a text")
        if len(value) > most:
            raise wrong(self.at(name), f"must have at most {most} characters")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self._value.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise wrong(self.at(name), "must be true or false")
        return value

    def count(self, name: str, *, least: int = 0, most: int = 2**31) -> int | None:
        """Return a whole number, None if it is absent."""
        value = self._value.get(name)
        if value is None:
            return None
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or not least <= value <= most:
            raise wrong(self.at(name), f"must be a whole number, {least} or more")
        return int(value)

    def fields(self, name: str) -> A2aFields | None:
        """Return an object, None if it is absent."""
        value = self._value.get(name)
        return None if value is None else A2aFields(value, self.at(name))

    def mapping(self, name: str) -> dict[str, Any]:
        """Return an object as it is; empty if it is absent."""
        found = self.fields(name)
        return {} if found is None else dict(found._value)

    def items(self, name: str, *, most: int) -> list[Any]:
        """Return a list; empty if it is absent."""
        value = self._value.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > most:
            raise wrong(self.at(name), f"must be a list of at most {most}")
        return value

    def texts(self, name: str, *, most: int = 64) -> tuple[str, ...]:
        """Return a list of texts; empty if it is absent."""
        found = self.items(name, most=most)
        if not all(isinstance(one, str) and len(one) <= 2048 for one in found):
            raise wrong(self.at(name), "must be a list of texts")
        return tuple(found)


def wrong(path: str, text: str) -> A2aError:
    """Return the error about a value that does not fit."""
    return A2aError(A2aFault.PARAMS, f"{path or 'params'}: {text}"[:300])


def read_send(params: Any, version: A2aVersion) -> SendParams:
    """Read the parameters of `message/send` and `message/stream`, in either version.

    Raises:
        A2aError: They do not fit.
    """
    fields = A2aFields(params, "")
    message = read_message(fields.raw("message"), version, path="message")
    if message.is_agent:
        raise wrong("message.role", "must be the user's")
    config = fields.fields("configuration") or A2aFields({}, "configuration")
    if version is A2aVersion.V03:
        blocking = config.flag("blocking", default=True)
        push = config.raw("pushNotificationConfig")
    else:
        blocking = not config.flag("returnImmediately", default=False)
        push = config.raw("taskPushNotificationConfig")
    return SendParams(
        message=message,
        is_blocking=blocking,
        history=config.count("historyLength"),
        output_modes=config.texts("acceptedOutputModes"),
        push=None if push is None else read_push(push, version, path=config.path),
        metadata=fields.mapping("metadata"),
    )


def read_list(params: Any) -> ListParams:
    """Read the parameters of a list of tasks, which only 1.0 has.

    Raises:
        A2aError: They do not fit.
    """
    fields = A2aFields(params, "")
    word, since = fields.text("status"), fields.text("statusTimestampAfter")
    state = read_state(word) if word else ""
    if state is None:
        raise wrong("status", "must be a state of a task")
    try:
        stamp = read_timestamp(since) if since else None
    except ValueError:
        raise wrong("statusTimestampAfter", "must be a time in ISO 8601") from None
    return ListParams(
        context=fields.text("contextId"),
        state="" if word.endswith("UNSPECIFIED") else state,
        changed_since=None if stamp is None else stamp.at,
        page_size=fields.count("pageSize", least=1, most=100) or 50,
        page_token=fields.text("pageToken"),
        history=fields.count("historyLength"),
        with_artifacts=fields.flag("includeArtifacts", default=False),
    )


def read_message(value: Any, version: A2aVersion, *, path: str) -> A2aMessage:
    """Read a message (A2A-11).

    Raises:
        A2aError: It is none.
    """
    fields = A2aFields(value, path)
    is_old = version is A2aVersion.V03
    if is_old and fields.raw("kind") not in (None, "message"):
        raise wrong(fields.at("kind"), "must be message")
    roles = {"user": False, "agent": True}
    if not is_old:
        roles = {"ROLE_USER": False, "ROLE_AGENT": True}
    role = fields.raw("role")
    if not isinstance(role, str) or role not in roles:
        raise wrong(fields.at("role"), f"must be one of {', '.join(roles)}")
    parts = fields.items("parts", most=MAX_PARTS)
    if not parts:
        raise wrong(fields.at("parts"), "must have one part at least")
    read = _old_part if is_old else _part
    return A2aMessage(
        id=fields.text("messageId", needed=True),
        is_agent=roles[role],
        parts=tuple(
            read(A2aFields(one, f"{fields.at('parts')}[{index}]"))
            for index, one in enumerate(parts)
        ),
        task=fields.text("taskId"),
        context=fields.text("contextId"),
        metadata=fields.mapping("metadata"),
        extensions=fields.texts("extensions"),
        references=fields.texts("referenceTaskIds"),
    )


def read_part(value: Any, version: A2aVersion, *, path: str) -> Part:
    """Read a part (A2A-13).

    Raises:
        A2aError: It is none.
    """
    fields = A2aFields(value, path)
    return _old_part(fields) if version is A2aVersion.V03 else _part(fields)


def _old_part(fields: A2aFields) -> Part:
    more: dict[str, Any] = {"metadata": fields.mapping("metadata")}
    match fields.raw("kind"):
        case "text":
            return Part.text(_any_text(fields, "text"), **more)
        case "data":
            if not isinstance(fields.raw("data"), dict):
                raise wrong(fields.at("data"), "must be an object")
            return Part.value(fields.raw("data"), **more)
        case "file":
            file = fields.fields("file") or A2aFields(None, fields.at("file"))
            more |= _names(file, media_type="mimeType", name="name")
            if ("bytes" in file) == ("uri" in file):
                raise wrong(file.path, "must have either bytes or uri")
            if "bytes" in file:
                return Part.data(_bytes(file, "bytes"), **more)
            return Part.link(file.text("uri", most=8192), **more)
    raise wrong(fields.at("kind"), "must be text, file or data")


def _part(fields: A2aFields) -> Part:
    found = [one for one in ("text", "raw", "url", "data") if one in fields]
    if not found and fields.has("data"):
        # `null` is a value, too.
        found = ["data"]
    if len(found) != 1:
        raise wrong(fields.path, "must have exactly one of text, raw, url and data")
    more: dict[str, Any] = {
        "metadata": fields.mapping("metadata"),
        **_names(fields, media_type="mediaType", name="filename"),
    }
    match found[0]:
        case "text":
            return Part.text(_any_text(fields, "text"), **more)
        case "raw":
            return Part.data(_bytes(fields, "raw"), **more)
        case "url":
            return Part.link(fields.text("url", most=8192), **more)
    return Part.value(fields.raw("data"), **more)


def _any_text(fields: A2aFields, name: str) -> str:
    value = fields.raw(name)
    if not isinstance(value, str):
        raise wrong(fields.at(name), "must be a text")
    return value


def _names(fields: A2aFields, *, media_type: str, name: str) -> dict[str, str]:
    found = {}
    kind = fields.text(media_type)
    if kind:
        if MEDIA_TYPE.fullmatch(kind) is None:
            raise wrong(fields.at(media_type), "must be a media type")
        found["media_type"] = kind
    # A name is data of the caller's, never a path.
    shown = _FOLDERS.sub("", fields.text(name, most=8192))[:MAX_NAME]
    if shown:
        found["name"] = shown
    return found


def _bytes(fields: A2aFields, name: str) -> bytes:
    value = fields.raw(name)
    if not isinstance(value, str):
        raise wrong(fields.at(name), "must be a text in base64")
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        raise wrong(fields.at(name), "is not base64") from None


def read_push(value: Any, version: A2aVersion, *, path: str) -> PushConfig:
    """Read an address for push notifications.

    Raises:
        A2aError: It is none.
    """
    fields = A2aFields(value, path)
    found = fields.fields("authentication")
    auth = found or A2aFields({}, fields.at("authentication"))
    schemes = auth.texts("schemes") if version is A2aVersion.V03 else ()
    return PushConfig(
        id=fields.text("id"),
        task=fields.text("taskId"),
        url=fields.text("url", most=2048, needed=True),
        token=fields.text("token", most=4096),
        scheme=schemes[0] if schemes else auth.text("scheme"),
        credentials=auth.text("credentials", most=8192),
        version=version,
    )


def read_push_set(params: Any, version: A2aVersion) -> PushConfig:
    """Read the parameters that give a task an address; its `task` is there.

    Raises:
        A2aError: They do not fit.
    """
    fields = A2aFields(params, "")
    task = fields.text("taskId", needed=True)
    inner = "pushNotificationConfig"
    is_old = version is A2aVersion.V03
    found = read_push(
        fields.raw(inner) if is_old else params, version, path=inner if is_old else ""
    )
    return replace(found, task=task)


def read_push_name(params: Any, version: A2aVersion) -> tuple[str, str]:
    """Read which task and which of its addresses is meant; the second may be empty.

    Raises:
        A2aError: They do not fit.
    """
    fields = A2aFields(params, "")
    is_old = version is A2aVersion.V03
    task, name = ("id", "pushNotificationConfigId") if is_old else ("taskId", "id")
    return fields.text(task, needed=True), fields.text(name)

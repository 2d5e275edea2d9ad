"""Answers questions through an OpenAI-compatible endpoint, with limited repetitions."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from negotiation.errors import MindError, MisuseError
from negotiation.llm.asking.answers import TOKENS_NAMES, Form, Forms, response_format
from negotiation.llm.asking.attempts import (
    Asking,
    AskingLimits,
    AttemptAnswered,
    CheckAnswer,
    Failed,
    Send,
)
from negotiation.llm.asking.questions import Question
from negotiation.llm.asking.requests import (
    FREE,
    Charge,
    Meter,
    ModelRequest,
    ModelServerError,
    Reply,
)
from negotiation.llm.asking.wire import ModelConnection, Trouble, Unreadable
from negotiation.need import Schema
from negotiation.strict_json import Json

if TYPE_CHECKING:
    import httpx2

logger = logging.getLogger(__name__)

OPENAI_URL: Final = "https://api.openai.com/v1"
"Address that is used when none is set."

KEY: Final = re.compile(r"[!-~]{1,4096}")
"Matches a key that is valid in a header."

MIN_SECRET: Final = 8
"Shortest header value that counts as a secret; shorter ones occur in any text."

MAX_MODEL_NAME: Final = 100
"Longest name of a model that is kept, in characters."

MAX_MODELS: Final = 16
"Largest number of model names that are distinguished in the log."

Validate = Callable[[Schema, Any], Awaitable[list[str]]]
"Validates a value against a schema and returns findings; runs in a worker."


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSettings:
    """The model's address, name and parameters."""

    model: str

    base_url: str = OPENAI_URL
    "Address of the API, usually ending in `/v1`."

    api_key: str | None = field(default=None, repr=False)
    "The key, or None to send none."

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    "Additional headers for every request; their values count as secrets."

    timeout: float = 60.0
    "Seconds for one question with all its repetitions."

    tokens_name: Literal["auto", "max_tokens", "max_completion_tokens"] = "auto"
    "The endpoint's parameter for the largest number of tokens; `auto` finds it out."

    temperature: float | None = None
    seed: int | None = None
    reasoning_effort: str | None = None

    form: Form = Form.JSON_SCHEMA
    "The strongest form in which answers are requested."

    limits: AskingLimits = field(default_factory=AskingLimits)

    def __post_init__(self) -> None:
        if self.api_key is not None and KEY.fullmatch(self.api_key) is None:
            raise MisuseError("the key holds a character that no header may have")
        if not self.timeout > 0:
            raise MisuseError("llm.timeout must be > 0 s")


class ModelEndpoint:
    """Answers questions through one endpoint; `close` it at the end.

    Every request passes a `Meter` first. The default meter of `ask` counts nothing, so
    the daemon asks through a spender that passes its own.

    Args:
        validate: Validates answers. Schemas are ours, but an `enum` may contain text of
            a peer, so the daemon runs this in a worker.
        transport: Replaces the network, for tests.
    """

    def __init__(
        self,
        settings: EndpointSettings,
        validate: Validate,
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._settings = settings
        self._validate = validate
        self._transport = transport
        self._wire: ModelConnection | None = None
        self._opening = asyncio.Lock()
        self._closed = False
        # OpenAI's own models know only the newer name; most other servers the older
        # one.
        names: tuple[str, ...] = TOKENS_NAMES
        if settings.base_url == OPENAI_URL:
            names = TOKENS_NAMES[::-1]
        if settings.tokens_name != "auto":
            names = (settings.tokens_name,)
        self._forms = Forms(settings.form, tokens_names=names)
        secrets = {settings.api_key or "", *settings.headers.values()}
        # Longest first, so that no rest of a secret is left when a part of it is
        # another.
        self._secrets = sorted(
            (secret for secret in secrets if len(secret) >= MIN_SECRET),
            key=lambda secret: (-len(secret), secret),
        )
        self._seen_models = {settings.model}

    def __repr__(self) -> str:
        return f"Endpoint({self._settings.model!r} at {self._settings.base_url!r})"

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._settings.model

    async def close(self) -> None:
        """Close the connections; running and later questions fail."""
        self._closed = True
        async with self._opening:
            wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()

    async def ask(self, question: Question, meter: Meter = FREE) -> Json:
        """Return the answer to `question`; see `Model.ask`.

        Args:
            meter: Allows and counts every single request.
        """
        asking = Asking(question, self._forms, self._settings.limits)
        timeout = self._settings.timeout
        deadline = asyncio.timeout(timeout)
        try:
            async with deadline:
                return await self._run(asking, question, meter, deadline)
        except TimeoutError:
            if not deadline.expired():
                raise
            last = asking.next_action
            before = f"; before that: {last.why}" if isinstance(last, Send) else ""
            reason = f"no answer within the {timeout:g} s of llm.timeout{before}"
            raise self._failure(question, reason) from None

    async def _run(
        self,
        asking: Asking,
        question: Question,
        meter: Meter,
        deadline: asyncio.Timeout,
    ) -> Json:
        while True:
            match asking.next_action:
                case Send() as send:
                    await self._wait(send, question, deadline)
                    async with meter.charge(question, send.request) as charge:
                        await self._exchange(asking, question, send.request, charge)
                case AttemptAnswered(value):
                    return value
                case Failed(reason):
                    raise self._failure(question, reason)
                case CheckAnswer():
                    raise MisuseError("an answer is checked within its request")

    async def _wait(
        self, send: Send, question: Question, deadline: asyncio.Timeout
    ) -> None:
        """Wait before a repetition, or fail at once if the deadline comes earlier."""
        if not send.wait:
            return
        end = deadline.when()
        if end is not None:
            left = end - asyncio.get_running_loop().time()
            if send.wait >= left:
                reason = (
                    f"{send.why}; the next try would be in {send.wait:g} s, past the "
                    f"{self._settings.timeout:g} s of llm.timeout"
                )
                raise self._failure(question, reason)
        await asyncio.sleep(send.wait)

    async def _exchange(
        self, asking: Asking, question: Question, request: ModelRequest, charge: Charge
    ) -> None:
        """Send one request, check the answer, and fill in `charge`."""
        if self._closed:
            raise self._failure(question, "the daemon is shutting down")
        # The request may have arrived, unless an error shows that it did not.
        charge.sent = True
        charge.outcome = "no_answer"
        match await self._send(question, request):
            case Reply() as reply:
                charge.usage = reply.usage
                self._refuse_secrets(question, reply, charge)
                charge.answer, charge.model = reply.text, reply.model[:MAX_MODEL_NAME]
                self._note_model(charge.model)
                asking.receive_reply(reply)
            case ModelServerError() as error:
                charge.no_cost()
                asking.receive_error(error)
            case Unreadable(reason):
                asking.receive_unreadable(reason)
            case Trouble(outcome, reason, sent):
                charge.sent = sent
                asking.receive_trouble(outcome, reason)
        if isinstance(check := asking.next_action, CheckAnswer):
            asking.receive_findings(await self._validate(question.schema, check.value))
        charge.outcome = asking.outcome

    async def _send(
        self, question: Question, request: ModelRequest
    ) -> Reply | ModelServerError | Unreadable | Trouble:
        settings = self._settings
        optional = {
            "response_format": response_format(request.form, question),
            "temperature": settings.temperature,
            "seed": settings.seed,
            "reasoning_effort": settings.reasoning_effort,
        }
        body = {
            "model": settings.model,
            "messages": [
                {"role": message.role, "content": message.content}
                for message in request.messages
            ],
            request.tokens_name: request.max_tokens,
            **{name: value for name, value in optional.items() if value is not None},
        }
        try:
            return await (await self._open()).send(body)
        except Exception as exc:  # noqa: BLE001  one question must not end the daemon
            # Without its text and traceback, either of which could contain a header.
            name = type(exc).__name__
            logger.error("model request failed step=%s error=%s", question.step, name)
            raise self._failure(question, f"the request failed ({name})") from None

    async def prepare(self) -> None:
        """Load the package and make the connections ready, before a question comes."""
        await self._open()

    async def _open(self) -> ModelConnection:
        async with self._opening:
            if self._wire is None:
                # The import takes half a second, the connections a tenth of that.
                self._wire = await asyncio.to_thread(self._connection)
            return self._wire

    def _connection(self) -> ModelConnection:
        settings = self._settings
        return ModelConnection(
            settings.base_url,
            api_key=settings.api_key,
            headers=settings.headers,
            timeout=settings.timeout,
            clean=self._redacted,
            transport=self._transport,
        )

    def _refuse_secrets(self, question: Question, reply: Reply, charge: Charge) -> None:
        """Raise if an answer contains our key, which could end up in a document."""
        said = (reply.text, reply.refusal, reply.model)
        if any(secret in text for secret in self._secrets for text in said):
            charge.outcome = "secret"
            raise self._failure(
                question, "the answer holds the key or a header's value"
            )

    def _note_model(self, model: str) -> None:
        """Log once that a model of another name answers; a dated name is usual."""
        if not model or model in self._seen_models:
            return
        if len(self._seen_models) < MAX_MODELS:
            self._seen_models.add(model)
            level = (
                logging.INFO
                if model.startswith(self._settings.model)
                else logging.WARNING
            )
            asked = self._settings.model
            logger.log(level, "model answers as asked=%r got=%r", asked, model)

    def _failure(self, question: Question, reason: str) -> MindError:
        return MindError(f"model, {question.step}: {self._redacted(reason)}")

    def _redacted(self, text: str) -> str:
        """Return `text` without our secrets, which a server may repeat."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

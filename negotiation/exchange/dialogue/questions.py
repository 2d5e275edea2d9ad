"""Questions in words between the two sides, and their answers (ANP-64 to ANP-69)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from negotiation.errors import CommunicationEnded, MessageDropped, MisuseError
from negotiation.exchange.events import (
    NeedSpokenAnswer,
    QuestionAnswered,
    QuestionEvent,
    QuestionUnanswered,
)
from negotiation.exchange.limits import MAX_SUMMARY, DialogueLimits
from negotiation.messages import (
    NaturalLanguageNegotiation,
    NaturalLanguageType,
    cut_text,
)

QUESTIONS: Final = "naturalLanguageNegotiation"
"The capability that both sides must have listed (ANP-81)."

NO_ANSWER: Final = "This side has no answer to this question."
"Sent to the peer when our side gives no answer, so that it need not wait."

BUSY_ANSWER: Final = "This side answers one question at a time; please ask again later."
"Sent to the peer when it has too many questions open."

_MESSAGE_ID: Final = re.compile(r"[A-Za-z0-9]{16}")


class Questions:
    """The questions of one channel, in both directions.

    Part of a machine: messages to send and events go to the two callables.
    """

    def __init__(
        self,
        limits: DialogueLimits,
        *,
        common: bool,
        send: Callable[[NaturalLanguageNegotiation], None],
        tell: Callable[[QuestionEvent], None],
    ) -> None:
        self._limits = limits
        self._common = common
        self._send = send
        self._tell = tell
        # Deadlines by message id, oldest first.
        self._asked: dict[str, float] = {}
        self._owed: dict[str, float] = {}

    # Our own side.

    def ask(self, text: str, message_id: str, *, now: float) -> None:
        """Ask the peer (ANP-66), or report at once why it cannot be asked.

        Raises:
            MisuseError: The id is not 16 letters and digits, or is in use.
        """
        if not _MESSAGE_ID.fullmatch(message_id) or message_id in self._asked:
            raise MisuseError("a question needs a new id of 16 letters and digits")
        if not self._common:
            reason = f"the peer does not have {QUESTIONS}"
        elif len(self._asked) >= self._limits.max_questions:
            reason = f"{len(self._asked)} questions are open already"
        else:
            self._asked[message_id] = now + self._limits.question_timeout
            self._say(NaturalLanguageType.REQUEST, message_id, text)
            return
        self._tell(QuestionUnanswered(message_id, reason))

    def answer(self, message_id: str, text: str) -> None:
        """Answer a question of the peer; ignored if it is no longer open."""
        if self._owed.pop(message_id, None) is not None:
            words = text if text.strip() else NO_ANSWER
            self._say(NaturalLanguageType.RESPONSE, message_id, words)

    # The peer's messages.

    def receive(self, message: NaturalLanguageNegotiation, *, now: float) -> None:
        """Handle a question or an answer of the peer.

        Raises:
            MessageDropped: It has no effect.
            CommunicationEnded: A second question has the id of an open one (ANP-Q13).
        """
        if not self._common:
            raise MessageDropped(f"{QUESTIONS} is not common")
        if message.type is NaturalLanguageType.RESPONSE:
            if self._asked.pop(message.message_id, None) is None:
                raise MessageDropped("an answer to no open question")
            self._tell(QuestionAnswered(message.message_id, message.message))
        elif message.message_id in self._owed:
            raise CommunicationEnded(
                "a question came twice with the same id", by_peer=True
            )
        elif len(self._owed) >= self._limits.max_questions:
            self._say(NaturalLanguageType.RESPONSE, message.message_id, BUSY_ANSWER)
            raise MessageDropped("too many open questions")
        else:
            self._owed[message.message_id] = now + self._limits.answer_timeout
            self._tell(NeedSpokenAnswer(message.message_id, message.message))

    # Time and end.

    def get_timer(self) -> float | None:
        """Return when `handle_timer` is due, or None."""
        return min([*self._asked.values(), *self._owed.values()], default=None)

    def handle_timer(self, *, now: float) -> None:
        """End all questions whose time is over."""
        for message_id in [one for one, due in self._asked.items() if now >= due]:
            del self._asked[message_id]
            reason = f"no answer in {self._limits.question_timeout:g} s"
            self._tell(QuestionUnanswered(message_id, reason))
        for message_id in [one for one, due in self._owed.items() if now >= due]:
            self.answer(message_id, NO_ANSWER)

    def close(self, reason: str) -> None:
        """End all questions without a message to the peer."""
        asked, self._asked, self._owed = self._asked, {}, {}
        for message_id in asked:
            self._tell(QuestionUnanswered(message_id, reason))

    def _say(self, kind: NaturalLanguageType, message_id: str, text: str) -> None:
        self._send(
            NaturalLanguageNegotiation(
                type=kind, message_id=message_id, message=cut_text(text, MAX_SUMMARY)
            )
        )

"""Budgets for the model: the accounts of the day, and the payer of each request.

`Spending` keeps the accounts, and each negotiation gets a `Spender`: a `Model` that
reserves before every request and settles after it. A spender for a peer is made where
its negotiation begins, which is on a channel, and no channel is there before its
handshake is complete: a peer that has not proved its key costs nothing (DESIGN.md,
Trust).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from anp.sidecar.telemetry.observer import Observer
from cache.errors import CacheError
from cache.records.negotiations import AnswerRecord, ModelCallRecord, SpendRecord
from cache.store import Store
from negotiation.errors import MindError
from negotiation.llm.asking.budget import (
    Budget,
    BudgetExhausted,
    BudgetLimits,
    Purse,
    Reservation,
    Spent,
    utc_day,
)
from negotiation.llm.asking.requests import Usage
from negotiation.strict_json import Json, canonical_json

if TYPE_CHECKING:
    from negotiation.llm.asking.endpoint import ModelEndpoint
    from negotiation.llm.asking.questions import Question
    from negotiation.llm.asking.requests import Charge, ModelRequest

# Costs of calls and negotiations: messages, rounds and the model's work. Pure.


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Counts that add up over the steps of a call."""

    messages: int = 0
    "Meta messages, both directions."

    rounds: int = 0
    "Candidates that were on the table."

    model_calls: int = 0
    "Model calls on our side."

    money: float = 0.0
    "Price of those, as the owner set it; 0 where no prices are set."

    def __add__(self, other: Cost) -> Cost:
        if other is NO_COST:
            # As nearly always: a usual call costs nothing.
            return self
        return Cost(
            messages=self.messages + other.messages,
            rounds=self.rounds + other.rounds,
            model_calls=self.model_calls + other.model_calls,
            money=self.money + other.money,
        )


NO_COST = Cost()


logger = logging.getLogger(__name__)

MAX_EXCHANGES = 16
"Exchanges with the model that are kept of one negotiation, the latest ones."

DAY = 86_400.0
"Seconds in which a question with the same bytes is not asked again."

MAX_KEPT = 64 * 1024
"Largest answer that is kept to be used again, in bytes of JSON."

MAX_SHOWN = 32 * 1024
"Most characters kept of one message to or from the model."


@dataclass(frozen=True, slots=True)
class Exchanged:
    """One request to the model and its answer, kept to be shown to the owner."""

    question: Question

    request: ModelRequest
    "The messages as they were sent."

    answer: str | None = field(repr=False)
    "The model's words, if there were any."

    outcome: str
    "The outcome of the request, as written in the ledger."

    usage: Usage
    "The model calls and tokens it is charged with."

    ms: float
    "Milliseconds it took."

    def shown(self) -> dict[str, Any]:
        """Return the exchange for the record of a negotiation, cut to a length."""
        return {
            "step": self.question.step,
            "messages": [
                {"role": message.role, "content": message.content[:MAX_SHOWN]}
                for message in self.request.messages
            ],
            "answer": (self.answer or "")[:MAX_SHOWN],
            "outcome": self.outcome,
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
            "ms": round(self.ms, 1),
        }


class Spending:
    """The accounts of the day, in memory and on disk.

    A call is on disk before it is made, with all it may cost, so that a daemon that is
    killed and started again, however often, grants nothing twice.

    Args:
        model: Its name, for the ledger.
        prices: Money for a million tokens of prompts and of answers.
        clock: Seconds since 1970.
    """

    def __init__(
        self,
        store: Store,
        limits: BudgetLimits,
        *,
        model: str,
        prices: tuple[float, float] = (0.0, 0.0),
        clock: Callable[[], float] = time.time,
        observer: Observer | None = None,
    ) -> None:
        self.observer = observer or Observer()
        self._store = store
        self._limits = limits
        self._model = model
        self._prices = prices
        self._clock = clock
        self._budget: Budget | None = None
        # One writer at a time: the newest state of an account is what lasts.
        self._lock = asyncio.Lock()

    @property
    def model(self) -> str:
        """The model's name."""
        return self._model

    def now(self) -> float:
        """Return the time, in seconds since 1970."""
        return self._clock()

    def cost(self, usage: Usage) -> float:
        """Return what `usage` costs at the owner's prices; 0 without prices."""
        input_price, output_price = self._prices
        money = usage.input_tokens * input_price + usage.output_tokens * output_price
        return money / 1e6

    async def reserve(
        self, account: str, purse: Purse, tokens: int, *, address: str = ""
    ) -> Reservation:
        """Take room for one call, and have it on disk; see `Budget.reserve`.

        Raises:
            BudgetExhausted: There is none.
            MindError: The disk does not take it; nothing may be spent unrecorded.
        """
        async with self._lock:
            budget = await self._today()
            reservation = budget.reserve(account, purse, tokens, address=address)
            try:
                await self._save(reservation.spent)
            except BaseException as exc:
                budget.release(reservation)
                if isinstance(exc, CacheError):
                    raise MindError(f"the spending cannot be recorded: {exc}") from exc
                raise
            return reservation

    async def settle(
        self, reservation: Reservation, usage: Usage, call: ModelCallRecord
    ) -> None:
        """Count what a call cost; it counts at once, the disk follows."""
        budget = self._budget
        assert budget is not None
        budget.settle(reservation, usage, cost=call.cost)
        await self._finish(reservation, call)

    async def release(self, reservation: Reservation) -> None:
        """Give back the room of a call that was never sent."""
        budget = self._budget
        assert budget is not None
        budget.release(reservation)
        await self._finish(reservation, None)

    async def _finish(
        self, reservation: Reservation, call: ModelCallRecord | None
    ) -> None:
        try:
            async with self._lock:
                await self._save(reservation.spent, call)
        except CacheError as exc:
            # The reservation stays on disk; it is more than was used.
            logger.error("spending not recorded reason=%s", exc)

    async def _today(self) -> Budget:
        """Return the budget at today's date, with what the disk knows of the day."""
        day = utc_day(self._clock())
        if self._budget is not None and day <= self._budget.day:
            return self._budget
        try:
            found = await asyncio.to_thread(self._store.spends, since=day)
        except CacheError as exc:
            raise MindError(f"the spending of today cannot be read: {exc}") from exc
        spent = [Spent(**asdict(record)) for record in found if record.day == day]
        if self._budget is None:
            self._budget = Budget(self._limits, day=day, spent=spent)
        else:
            self._budget.start_day(day, spent=spent)
        return self._budget

    async def _save(self, spent: Spent, call: ModelCallRecord | None = None) -> None:
        # The record is made here: the account goes on changing while a thread writes.
        record = SpendRecord(**asdict(spent))
        write = asyncio.ensure_future(
            asyncio.to_thread(self._store.save_spend, record, call)
        )
        try:
            await asyncio.shield(write)
        except asyncio.CancelledError:
            # Under the lock to its end, or it could come after a newer state.
            await asyncio.wait([write])
            raise

    async def known(self, key: str) -> dict[str, Any] | None:
        """Return what was stored under `key`, a hash, and has not expired."""
        try:
            found = await asyncio.to_thread(self._store.answer, key, now=self.now())
        except CacheError as exc:
            logger.warning("answer not read reason=%s", exc)
            return None
        return None if found is None else dict(found.answer)

    async def keep(self, key: str, answer: dict[str, Any], *, seconds: float) -> None:
        """Store what was paid for, for so many seconds."""
        if len(canonical_json(answer)) > MAX_KEPT:
            return
        now = self.now()
        record = AnswerRecord(key, answer, at=now, expires=now + seconds)
        try:
            await asyncio.to_thread(self._store.save_answer, record)
        except CacheError as exc:
            # It costs another call; nothing else depends on it.
            logger.warning("answer not kept reason=%s", exc)

    def record(
        self,
        reservation: Reservation,
        charge: Charge,
        *,
        step: str,
        peer: str | None,
        negotiation_id: str | None,
        at: float,
        ms: float,
    ) -> ModelCallRecord:
        """Return the line of the ledger for a call that was sent."""
        usage = charge.usage or Usage(reservation.tokens, 0)
        spent = reservation.spent
        return ModelCallRecord(
            id=secrets.token_hex(8),
            day=spent.day,
            at=at,
            account=spent.account,
            peer=peer,
            negotiation_id=negotiation_id,
            step=step,
            model=self._model[:200],
            outcome=charge.outcome,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            estimated=charge.usage is None,
            ms=ms,
            cost=self.cost(usage),
        )


class Spender:
    """The model for one negotiation, paid from one account; see `Model`.

    Args:
        account: The payer: `OWNER`, `UNLISTED`, or the canonical DID of a listed peer.
            Whoever makes us think pays: our own call from the owner's account, all
            that a peer's message starts from the peer's, also on a channel of ours.
        address: Address of an unlisted peer, which has a part of their account.
        peer: With whom, in its canonical form, for the ledger.
        negotiation_id: For the ledger.
        watch: Gets every exchange, so that the owner can look at it.
        remembers: True to give the answer of the last day to the same question.
    """

    def __init__(
        self,
        endpoint: ModelEndpoint,
        spending: Spending,
        *,
        account: str,
        address: str = "",
        peer: str | None = None,
        negotiation_id: str | None = None,
        watch: Callable[[Exchanged], None] | None = None,
        remembers: bool = False,
    ) -> None:
        self._remembers = remembers
        self._endpoint = endpoint
        self._spending = spending
        self._account = account
        self._address = address
        self._peer = peer
        self._negotiation_id = negotiation_id
        self._watch = watch
        self._purse = Purse()
        self._money = 0.0
        self.exhausted = ""
        "Names the budget that had no room for a request, for the owner; else empty."

    @property
    def calls(self) -> int:
        """Requests this negotiation made, those under way included."""
        return self._purse.calls

    @property
    def tokens(self) -> int:
        """Tokens this negotiation used so far."""
        return self._purse.tokens

    def cost(self) -> Cost:
        """Return the model calls so far, with the price of those that have ended."""
        return Cost(model_calls=self.calls, money=self._money)

    async def ask(self, question: Question) -> Json:
        """Return the answer to `question`; see `Model.ask`.

        A question with the same bytes is paid for once a day, whoever asks, if the
        spender remembers.

        Raises:
            BudgetExhausted: There is no room for another request.
            MindError: No answer came of it.
        """
        if not self._remembers:
            return await self._endpoint.ask(question, self)
        key = self._key(question)
        if (known := await self._spending.known(key)) is not None:
            logger.info("model answered before step=%s", question.step)
            return known
        answer = await self._endpoint.ask(question, self)
        if isinstance(answer, dict):
            await self._spending.keep(key, answer, seconds=DAY)
        return answer

    def _key(self, question: Question) -> str:
        """Return the hash over all that an answer to `question` depends on."""
        parts = [
            "question",
            self._endpoint.model,
            question.step,
            question.system,
            question.user,
            question.schema,
            question.max_tokens,
        ]
        return hashlib.sha256(canonical_json(parts)).hexdigest()

    @contextlib.asynccontextmanager
    async def charge(
        self, question: Question, request: ModelRequest
    ) -> AsyncIterator[Charge]:
        """Reserve what `request` can cost, and settle it; see `Meter`."""
        from negotiation.llm.asking.requests import Charge

        spending = self._spending
        try:
            reservation = await spending.reserve(
                self._account,
                self._purse,
                request.most_tokens.total,
                address=self._address,
            )
        except BudgetExhausted as exc:
            self.exhausted = str(exc)
            raise
        charge = Charge()
        observer = spending.observer
        with observer.chat(spending.model, purpose=question.step) as span:
            at, began = spending.now(), time.monotonic()
            try:
                yield charge
            finally:
                ms = (time.monotonic() - began) * 1000
                used = charge.usage or Usage(0, 0)
                observer.model_asked(
                    span,
                    purpose=question.step,
                    outcome=charge.outcome if charge.sent else "unreachable",
                    input_tokens=used.input_tokens,
                    output_tokens=used.output_tokens,
                )
                await self._settle(question, request, reservation, charge, at=at, ms=ms)

    async def _settle(
        self,
        question: Question,
        request: ModelRequest,
        reservation: Reservation,
        charge: Charge,
        *,
        at: float,
        ms: float,
    ) -> None:
        if not charge.sent:
            logger.warning(
                "model not reached step=%s outcome=%s", question.step, charge.outcome
            )
            await self._spending.release(reservation)
            return
        record = self._spending.record(
            reservation,
            charge,
            step=question.step,
            peer=self._peer,
            negotiation_id=self._negotiation_id,
            at=at,
            ms=ms,
        )
        logger.info(
            "model asked step=%s outcome=%s account=%s ms=%.0f input=%d output=%d",
            question.step,
            charge.outcome,
            self._account,
            ms,
            record.input_tokens,
            record.output_tokens,
        )
        usage = Usage(record.input_tokens, record.output_tokens)
        await self._spending.settle(reservation, usage, record)
        self._money += record.cost
        if self._watch is not None:
            self._watch(
                Exchanged(question, request, charge.answer, charge.outcome, usage, ms)
            )

"""The part of the store for counts of calls, and for the spending on models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cache.parts.shelf import StoreBase, aside_transaction, key_of
from cache.records.negotiations import AnswerRecord, ModelCallRecord, SpendRecord
from cache.records.records import AgreementRecord, UsageRecord
from cache.rows import Rows

MAX_LEDGER_DAY = 1000
"Newest calls of one day that the ledger keeps; accounts count all calls."

MAX_LEDGER = 20_000
"Newest calls that the ledger keeps in all."

MAX_ANSWERS = 1000
"Newest answers of models that are kept; a day's budget is a few hundred."

MAX_ACCOUNTS = 20_000
"Newest daily accounts that are kept; enough for years with a few peers."


class UsageStore(StoreBase):
    """Counts the use of each protocol and of models."""

    @aside_transaction
    def add_usage(
        self,
        cache: Rows,
        counted: Iterable[UsageRecord],
        uses: Iterable[tuple[AgreementRecord, int, float]] = (),
    ) -> None:
        """Add counts to the stored ones in one transaction.

        Args:
            counted: New calls by document; the record without a hash counts all.
            uses: Agreements, each with its new calls and the end of the last one in
                seconds since 1970.
        """
        for one in counted:
            known = self._shelf.get(cache, UsageRecord, key_of(one))
            self._shelf.put(cache, one if known is None else known.plus(one))
        for agreement, count, last in uses:
            stored = self._shelf.get(cache, AgreementRecord, key_of(agreement))
            if stored is not None:
                latest = max(last, stored.last_used or 0.0)
                total = stored.uses + count
                self._shelf.put(cache, replace(stored, uses=total, last_used=latest))

    def usage(self, hash_: str | None = None) -> UsageRecord:
        """Return the counts of a document, or those of all calls."""
        empty = UsageRecord(hash_.lower() if hash_ is not None else None)
        found = self._get(UsageRecord, key_of(empty))
        return empty if found is None else found

    def last_uses(self) -> dict[str, float]:
        """Return for each document's hash when the last call through it ended."""
        found = self._scan(UsageRecord, "usage/")
        return {
            one.hash: one.last_used
            for one in found
            if one.hash is not None and one.last_used is not None
        }

    # Spending on models

    @aside_transaction
    def save_spend(
        self, cache: Rows, spend: SpendRecord, call: ModelCallRecord | None = None
    ) -> None:
        """Store an account's day and a finished call in one transaction."""
        self._shelf.put(cache, spend)
        if call is not None:
            self._shelf.put(cache, call)
            _keep_newest(cache, f"model_call/{call.day}/", MAX_LEDGER_DAY)
            _keep_newest(cache, "model_call/", MAX_LEDGER)
        _keep_newest(cache, "spend/", MAX_ACCOUNTS)

    def spends(self, *, since: str) -> list[SpendRecord]:
        """Return the accounts from the day `since` on, newest day first."""
        all_ = self._scan(SpendRecord, "spend/", limit=MAX_ACCOUNTS)
        found = [record for record in all_ if record.day >= since]
        # Two sorts, since days are descending and names ascending.
        found.sort(key=lambda record: record.account)
        return sorted(found, key=lambda record: record.day, reverse=True)

    # Answers that were paid for

    def answer(self, question: str, *, now: float) -> AnswerRecord | None:
        """Return the answer to a question with this hash; None after it expired.

        Args:
            now: Seconds since 1970.
        """
        found = self._get(AnswerRecord, f"answer/{question}")
        return found if found is not None and found.expires > now else None

    @aside_transaction
    def save_answer(self, cache: Rows, answer: AnswerRecord) -> None:
        """Store an answer; over the bound the oldest go."""
        self._shelf.put(cache, answer)
        if len(cache.sizes("answer/")) > MAX_ANSWERS:
            kept = self._shelf.scan(cache, AnswerRecord, "answer/")
            kept.sort(key=lambda one: (one.expires > answer.at, one.at))
            for one in kept[: len(kept) - MAX_ANSWERS * 9 // 10]:
                cache.delete(key_of(one))

    def model_calls(
        self, *, since: str, limit: int = MAX_LEDGER
    ) -> list[ModelCallRecord]:
        """Return the newest `limit` calls from the day `since` on."""
        newest = self._scan(
            ModelCallRecord, "model_call/", limit=limit, descending=True
        )
        return [record for record in newest if record.day >= since]


def _keep_newest(cache: Rows, prefix: str, most: int) -> None:
    rows = cache.sizes(prefix, descending=True)
    for key, _ in rows[most:]:
        cache.delete(key)

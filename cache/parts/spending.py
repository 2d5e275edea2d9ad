"""The part of the store for money: accounts by day, and the ledger of model calls."""

from __future__ import annotations

from cache.parts.agreements import AgreementStore
from cache.records.spending import ModelCallRecord, SpendRecord
from cache.rows import Rows

__all__ = ["MAX_LEDGER_DAY", "SpendStore"]

MAX_LEDGER_DAY = 1000
"Calls of one day that the ledger keeps, the newest ones; accounts count all of them."

MAX_LEDGER = 20_000
"Calls that the ledger keeps in all, the newest ones."

MAX_ACCOUNTS = 20_000
"Accounts kept, each of one day, the newest ones; years of a few peers."


class SpendStore(AgreementStore):
    """What was spent on models, on disk; see `AgreementStore`."""

    def save_spend(
        self, spend: SpendRecord, call: ModelCallRecord | None = None
    ) -> None:
        """Store an account's day, and a call that ended, in one transaction."""

        def work(cache: Rows) -> None:
            self._shelf.put(cache, spend)
            if call is not None:
                self._shelf.put(cache, call)
                _keep_newest(cache, f"model_call/{call.day}/", MAX_LEDGER_DAY)
                _keep_newest(cache, "model_call/", MAX_LEDGER)
            _keep_newest(cache, "spend/", MAX_ACCOUNTS)

        self._database.write(work)

    def spends(self, *, since: str) -> list[SpendRecord]:
        """Return the accounts of the day `since` and later ones, newest day first."""

        def work(cache: Rows) -> list[SpendRecord]:
            return self._shelf.scan(cache, SpendRecord, "spend/", limit=MAX_ACCOUNTS)

        found = [record for record in self._database.read(work) if record.day >= since]
        # Two steps, since days go down and names up.
        found.sort(key=lambda record: record.account)
        return sorted(found, key=lambda record: record.day, reverse=True)

    def model_calls(
        self, *, since: str, limit: int = MAX_LEDGER
    ) -> list[ModelCallRecord]:
        """Return the newest `limit` calls of the day `since` and later ones."""

        def work(cache: Rows) -> list[ModelCallRecord]:
            return self._shelf.scan(
                cache, ModelCallRecord, "model_call/", limit=limit, descending=True
            )

        return [record for record in self._database.read(work) if record.day >= since]


def _keep_newest(cache: Rows, prefix: str, most: int) -> None:
    rows = cache.sizes(prefix, descending=True)
    for key, _ in rows[most:]:
        cache.delete(key)

"""The part of the store for daily spending accounts and the ledger of model calls."""

from __future__ import annotations

from cache.parts.agreements import AgreementStore
from cache.records.negotiations import ModelCallRecord, SpendRecord
from cache.rows import Rows

__all__ = ["MAX_LEDGER_DAY", "SpendStore"]

MAX_LEDGER_DAY = 1000
"Newest calls of one day that the ledger keeps; accounts count all calls."

MAX_LEDGER = 20_000
"Newest calls that the ledger keeps in all."

MAX_ACCOUNTS = 20_000
"Newest daily accounts that are kept; enough for years with a few peers."


class SpendStore(AgreementStore):
    """Stores the spending on models; see `AgreementStore`."""

    def save_spend(
        self, spend: SpendRecord, call: ModelCallRecord | None = None
    ) -> None:
        """Store an account's day and a finished call in one transaction."""

        def work(cache: Rows) -> None:
            self._shelf.put(cache, spend)
            if call is not None:
                self._shelf.put(cache, call)
                _keep_newest(cache, f"model_call/{call.day}/", MAX_LEDGER_DAY)
                _keep_newest(cache, "model_call/", MAX_LEDGER)
            _keep_newest(cache, "spend/", MAX_ACCOUNTS)

        self._database.write(work)

    def spends(self, *, since: str) -> list[SpendRecord]:
        """Return the accounts from the day `since` on, newest day first."""

        def work(cache: Rows) -> list[SpendRecord]:
            return self._shelf.scan(cache, SpendRecord, "spend/", limit=MAX_ACCOUNTS)

        found = [record for record in self._database.read(work) if record.day >= since]
        # Two sorts, since days are descending and names ascending.
        found.sort(key=lambda record: record.account)
        return sorted(found, key=lambda record: record.day, reverse=True)

    def model_calls(
        self, *, since: str, limit: int = MAX_LEDGER
    ) -> list[ModelCallRecord]:
        """Return the newest `limit` calls from the day `since` on."""

        def work(cache: Rows) -> list[ModelCallRecord]:
            return self._shelf.scan(
                cache, ModelCallRecord, "model_call/", limit=limit, descending=True
            )

        return [record for record in self._database.read(work) if record.day >= since]


def _keep_newest(cache: Rows, prefix: str, most: int) -> None:
    rows = cache.sizes(prefix, descending=True)
    for key, _ in rows[most:]:
        cache.delete(key)

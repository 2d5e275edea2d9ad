# kind: fixed-width bank records
"""Bank statement lines of fixed width, as in old mainframe exports."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Callable


@dataclass(frozen=True)
class Column:
    name: str
    start: int
    end: int
    convert: Callable[[str], Any] = str.strip

    def read(self, line: str) -> Any:
        return self.convert(line[self.start : self.end])

    @property
    def width(self) -> int:
        return self.end - self.start


def _day(text: str) -> date:
    return datetime.strptime(text, "%y%m%d").date()


def _amount(text: str) -> Decimal:
    sign = {"C": 1, "D": -1}[text[-1]]
    return sign * Decimal(int(text[:-1])).scaleb(-2)


COLUMNS = (
    Column("kind", 0, 2),
    Column("account", 2, 12, lambda text: text.lstrip("0")),
    Column("day", 12, 18, _day),
    Column("amount", 18, 29, _amount),
    Column("text", 29, 49),
)
LENGTH = COLUMNS[-1].end


class RecordError(ValueError):
    pass


def parse(text: str) -> dict:
    entries, balance = [], Decimal("0.00")
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) != LENGTH:
            raise RecordError(f"record {number}: {len(line)} characters instead of {LENGTH}")
        try:
            record = {column.name: column.read(line) for column in COLUMNS}
        except (ValueError, KeyError, ArithmeticError) as exc:
            raise RecordError(f"record {number} is damaged") from exc
        balance += record["amount"]
        entries.append(
            record | {"day": record["day"].isoformat(), "amount": f"{record['amount']:+.2f}"}
        )
    return {"entries": entries, "balance": str(balance)}


def render(entries: list[dict]) -> str:
    lines = []
    for entry in entries:
        amount = Decimal(entry["amount"])
        day = date.fromisoformat(entry["day"])
        fields = {
            "kind": entry.get("kind", "01"),
            "account": entry["account"].zfill(10),
            "day": f"{day:%y%m%d}",
            "amount": f"{abs(int(amount * 100)):010d}{'D' if amount < 0 else 'C'}",
            "text": entry["text"],
        }
        lines.append("".join(f"{fields[c.name]:{c.width}.{c.width}}" for c in COLUMNS))
    return "\n".join(lines)

# kind: CSV reading and writing
"""Stock lists as CSV with a header row; quantities and prices typed."""

import csv
import io
from decimal import Decimal, InvalidOperation
from typing import Iterator, NamedTuple


class StockRow(NamedTuple):
    sku: str
    quantity: int
    price: Decimal
    note: str = ""


class RowError(ValueError):
    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


HEADER = list(StockRow._fields)


def _rows(text: str) -> Iterator[StockRow]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    if reader.fieldnames is None or set(reader.fieldnames) - set(HEADER):
        raise RowError(1, f"unexpected header {reader.fieldnames}")
    for number, row in enumerate(reader, start=2):
        try:
            yield StockRow(
                sku=row["sku"].strip().upper(),
                quantity=int(row["quantity"]),
                price=Decimal(row["price"]),
                note=row.get("note") or "",
            )
        except (ValueError, InvalidOperation) as exc:
            raise RowError(number, "bad number") from exc


def parse_stock(text: str) -> list[dict]:
    return [{**row._asdict(), "price": str(row.price)} for row in _rows(text)]


def stock_value(text: str) -> str:
    total = sum((row.quantity * row.price for row in _rows(text)), start=Decimal(0))
    return str(total.quantize(Decimal("0.01")))


def format_stock(items: list[dict]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=";", quoting=csv.QUOTE_MINIMAL, lineterminator="\n")
    writer.writerow(HEADER)
    for item in items:
        writer.writerow([item.get(name, "") for name in HEADER])
    return buffer.getvalue()


def format_with_dicts(items: list[dict]) -> str:
    with io.StringIO() as out:
        writer = csv.DictWriter(out, fieldnames=["sku", "quantity"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(items)
        return out.getvalue()

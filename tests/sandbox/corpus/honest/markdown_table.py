# kind: markdown tables
"""Markdown tables to records and back."""

from __future__ import annotations

import re

_ALIGN = {(True, True): "center", (False, True): "right", (True, False): "left"}


class TableError(ValueError):
    pass


def _cells(line: str) -> list[str]:
    inner = line.strip().strip("|")
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]


def parse(text: str) -> dict:
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        raise TableError("a table needs a header and a rule")
    header, rule, *body = map(_cells, lines)
    if not all(re.fullmatch(":?-+:?", cell) for cell in rule):
        raise TableError(f"bad rule: {lines[1]}")
    alignment = [_ALIGN.get((c.startswith(":"), c.endswith(":")), "left") for c in rule]
    rows = []
    for number, cells in enumerate(body, start=3):
        if len(cells) > len(header):
            raise TableError(f"line {number} has {len(cells)} cells, not {len(header)}")
        cells += [""] * (len(header) - len(cells))
        rows.append(dict(zip(header, cells)))
    return {"align": dict(zip(header, alignment)), "rows": rows}


def render(rows: list[dict], numeric: list[str] | None = None) -> str:
    numeric = numeric or []
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = [[str(row.get(name, "")).replace("|", r"\|") for name in names] for row in rows]
    widths = [max(3, len(name), *(len(r[i]) for r in table)) for i, name in enumerate(names)]

    def line(cells: list[str]) -> str:
        padded = [
            cell.rjust(width) if name in numeric else cell.ljust(width)
            for name, cell, width in zip(names, cells, widths)
        ]
        return f"| {' | '.join(padded)} |"

    rules = ["-" * (w - 1) + ":" if n in numeric else "-" * w for n, w in zip(names, widths)]
    return "\n".join([line(names), line(rules), *map(line, table)])

# kind: text wrapping and plain-text layout
"""Plain-text notifications, wrapped to the peer's line width."""

import textwrap
from textwrap import fill, indent, shorten

WIDTH = 40
_RULE = "-" * WIDTH


def notification(title: str, paragraphs: list[str], *, width: int = WIDTH) -> str:
    wrapper = textwrap.TextWrapper(width=width, initial_indent="  ", subsequent_indent="  ")
    body = "\n\n".join(wrapper.fill(" ".join(p.split())) for p in paragraphs)
    return f"{title.upper():^{width}}\n{_RULE[:width]}\n{body}\n"


def quote(text: str) -> str:
    return indent(fill(text, width=WIDTH - 2), "> ", lambda line: bool(line.strip()))


def preview(text: str, limit: int = 24) -> str:
    return shorten(text, width=limit, placeholder="...")


def columns(rows: list[list[str]], *, sep: str = " | ") -> str:
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    lines = []
    for number, row in enumerate(rows):
        cells = (
            f"{cell:>{width}}" if cell.replace(".", "", 1).isdigit() else f"{cell:<{width}}"
            for cell, width in zip(row, widths, strict=True)
        )
        lines.append(sep.join(cells).rstrip())
        if number == 0:
            lines.append("-+-".join("-" * width for width in widths))
    return "\n".join(lines)


def unquote(text: str) -> list[str]:
    return [line.removeprefix("> ") for line in text.splitlines() if line.startswith("> ")]

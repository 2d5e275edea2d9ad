"""The counts in the text format of Prometheus, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from anp.sidecar.telemetry.metrics import FAMILIES, Family, Metrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"Media type of the text format."


def metrics_text(metrics: Metrics) -> bytes:
    """Return all counts in the text format."""
    lines: list[str] = []
    for family in FAMILIES:
        lines.append(f"# HELP {family.name} {_escaped(family.text)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines += _samples(family, metrics)
    return "\n".join([*lines, ""]).encode()


def _samples(family: Family, metrics: Metrics) -> Iterator[str]:
    if family.kind != "histogram":
        for values, number in metrics.numbers(family).items():
            yield _sample(family.name, zip(family.labels, values, strict=True), number)
        return
    for values, found in metrics.histograms(family).items():
        labels = list(zip(family.labels, values, strict=True))
        bounds = [*(f"{bound:g}" for bound in found.bounds), "+Inf"]
        total = 0.0
        for bound, total in zip(bounds, accumulate(found.counts), strict=True):
            yield _sample(f"{family.name}_bucket", [*labels, ("le", bound)], total)
        yield _sample(f"{family.name}_count", labels, total)
        yield _sample(f"{family.name}_sum", labels, found.total)


def _sample(name: str, labels: Iterable[tuple[str, str]], number: float) -> str:
    pairs = ",".join(
        f'{label}="{_escaped(value, quotes=True)}"' for label, value in labels
    )
    return f"{name}{{{pairs}}} {float(number)}" if pairs else f"{name} {float(number)}"


def _escaped(text: str, *, quotes: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text

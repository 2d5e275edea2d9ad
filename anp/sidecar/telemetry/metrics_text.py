"""The counts as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from anp.sidecar.telemetry.metrics import FAMILIES, Family, Metrics

if TYPE_CHECKING:
    from prometheus_client.core import Metric

__all__ = ["CONTENT_TYPE", "metrics_text"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"Media type of the text format."


def metrics_text(metrics: Metrics) -> bytes:
    """Return all counts in the text format; imports prometheus-client."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(metrics))
    text: bytes = generate_latest(registry)
    return text


class _Collector:
    """Gives the counts to prometheus-client."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        for family in FAMILIES:
            yield _shown(family, self._metrics)

    def describe(self) -> list[Metric]:
        return []


def _shown(family: Family, metrics: Metrics) -> Metric:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    names = list(family.labels)
    if family.kind == "histogram":
        histogram = HistogramMetricFamily(family.name, family.text, labels=names)
        for values, found in metrics.histograms(family).items():
            bounds = [*(f"{bound:g}" for bound in found.bounds), "+Inf"]
            sums = accumulate(found.counts)
            buckets = [(b, float(n)) for b, n in zip(bounds, sums, strict=True)]
            histogram.add_metric(list(values), buckets, found.total)
        return histogram
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    shown = kind(family.name, family.text, labels=names)
    for values, number in metrics.numbers(family).items():
        shown.add_metric(list(values), number)
    return shown

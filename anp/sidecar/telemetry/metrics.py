"""The daemon's counters: every metric with its labels and their values. Pure.

The counts are plain numbers, so that counting costs nothing worth mentioning.
`metrics_text` writes them down when somebody asks.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, Literal

from anp.errors import ErrorKind, LocalError

OTHER: Final = "other"
"Value of a label in place of one that the table does not have."

ROLES: Final = ("requester", "provider")
OUTCOMES: Final = ("ok", "unanswered", *(kind.value for kind in ErrorKind))
SOURCES: Final = (
    *("agreement", "consensus", "published", "negotiated", "natural_language"),
    "none",
)
PURPOSES: Final = (
    *("propose", "offer", "choose", "option", "reply", "changes", "messages"),
    *("codec", "cases", "judge_cases", "fault", "answer", "serve"),
    *("select", "allow"),
)
SECONDS: Final = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)
SHORT: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0)
ROUNDS: Final = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One metric."""

    name: str
    "Its name in Prometheus; counters end in `_total`."

    kind: Literal["counter", "gauge", "histogram"]

    text: str
    "Its description for people."

    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    "Each label with its values; nothing else ever becomes one, least of all a DID."

    buckets: tuple[float, ...] = ()
    "Upper bounds of a histogram, without infinity."

    def label_values(self, given: Mapping[str, str]) -> tuple[str, ...]:
        """Return the values in the order of `labels`, unknown ones as `other`.

        Raises:
            LocalError: Other labels were given than the table has.
        """
        if given.keys() != self.labels.keys():
            raise LocalError(f"{self.name} has the labels {', '.join(self.labels)}")
        return tuple(
            given[name] if given[name] in known else OTHER
            for name, known in self.labels.items()
        )


FAMILIES: Final[tuple[Family, ...]] = (
    Family(
        name="anpd_handshakes_total",
        kind="counter",
        text="Handshakes that ended, by our role.",
        labels={"role": ROLES, "outcome": ("ok", "refused", "unreachable", "failed")},
    ),
    Family(
        name="anpd_negotiations_total",
        kind="counter",
        text="Negotiations that ended, by our role.",
        labels={
            "role": ROLES,
            "outcome": (
                *("agreed", "rejected", "rounds", "protocol_error", "timeout"),
                *("code_generation", "mind", "cancelled", "link_lost"),
                *("approval-pending", "peer-approval-pending", "unexpected"),
            ),
        },
    ),
    Family(
        name="anpd_negotiation_proposals",
        kind="histogram",
        text="Proposals in one negotiation, both sides together.",
        buckets=ROUNDS,
    ),
    Family(
        name="anpd_protocol_lookups_total",
        kind="counter",
        text="Protocols found for outgoing calls: an agreement, one by URI, or none.",
        labels={"result": ("agreement", "consensus", "miss")},
    ),
    Family(
        name="anpd_calls_total",
        kind="counter",
        text="Calls that ended, out to peers and in from them.",
        labels={"direction": ("out", "in"), "source": SOURCES, "outcome": OUTCOMES},
    ),
    Family(
        name="anpd_call_duration_seconds",
        kind="histogram",
        text="Seconds of a whole call, a negotiation included.",
        labels={"direction": ("out", "in")},
        buckets=SECONDS,
    ),
    Family(
        name="anpd_calls_in_flight",
        kind="gauge",
        text="Calls and negotiations that run now.",
    ),
    Family(
        name="anpd_llm_requests_total",
        kind="counter",
        text="Requests to the model, by what for.",
        labels={
            "purpose": PURPOSES,
            "outcome": (
                *("ok", "cut", "empty", "length", "no_json", "refused", "unfit"),
                *("unreadable", "no_answer", "silent", "broken", "too_large", "secret"),
                "unreachable",
                *("http_429", "http_4xx", "http_5xx"),
            ),
        },
    ),
    Family(
        name="anpd_llm_tokens_total",
        kind="counter",
        text="Tokens of the model.",
        labels={"purpose": PURPOSES, "type": ("input", "output")},
    ),
    Family(
        name="anpd_sandbox_runs_total",
        kind="counter",
        text="Runs of generated code.",
        labels={
            "outcome": (
                *("ok", "rejected", "error", "memory", "timeout", "crashed"),
                *("output_too_large", "bad_frame", "capability_limit", "forbidden"),
                *("quarantined", "forbidden_syscall", "busy"),
            )
        },
    ),
    Family(
        name="anpd_sandbox_duration_seconds",
        kind="histogram",
        text="Seconds of one run of generated code, capability calls included.",
        buckets=SHORT,
    ),
    Family(
        name="anpd_connections", kind="gauge", text="Open connections to other daemons."
    ),
    Family(name="anpd_channels", kind="gauge", text="Channels that are open."),
    Family(
        name="anpd_places",
        kind="gauge",
        text="Places that peers have taken, and all there are.",
        labels={
            "resource": (
                *("handshakes", "connections", "unlisted_connections"),
                "negotiations",
            ),
            "state": ("taken", "all"),
        },
    ),
    Family(
        name="anpd_places_lost",
        kind="gauge",
        text="Since the start: peers without a place, and places given to another.",
        labels={
            "resource": ("connections", "negotiations"),
            "how": ("refused", "displaced"),
        },
    ),
    Family(
        name="anpd_attachments",
        kind="gauge",
        text="Attachments, by health.",
        labels={"state": ("healthy", "sick")},
    ),
    Family(
        name="anpd_log_lines_suppressed_total",
        kind="counter",
        text="Log lines that were not written, because many of the same cause were.",
    ),
    Family(
        name="anpd_ready", kind="gauge", text="1 while /readyz answers 200, else 0."
    ),
    Family(
        name="anpd_config_last_reload_successful",
        kind="gauge",
        text="1 unless the last reload failed.",
    ),
    Family(
        name="anpd_start_time_seconds",
        kind="gauge",
        text="When the daemon started, in seconds since 1970.",
    ),
    Family(
        name="anpd_info",
        kind="gauge",
        text="Always 1; the version and the sandbox's level are its labels.",
        # One value each for the life of a process.
        labels={"version": (), "sandbox_level": ()},
    ),
)
"Every metric there is; docs/operation.md lists the same."

_BY_NAME: Final = {family.name: family for family in FAMILIES}

Values = tuple[str, ...]


@dataclass(slots=True)
class Histogram:
    """Observations of one set of label values."""

    bounds: tuple[float, ...]

    counts: list[int]
    "Number of values under each bound and above the one before; last, those above all."

    total: float = 0.0
    "Their sum."

    def observe(self, value: float) -> None:
        """Count one."""
        self.counts[bisect.bisect_left(self.bounds, value)] += 1
        self.total += value


class Metrics:
    """The counts of one daemon."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[Values, float]] = {}
        self._histograms: dict[str, dict[Values, Histogram]] = {}
        self._readers: dict[str, Callable[[], Mapping[Values, float]]] = {}
        self._checked: dict[tuple[object, ...], Values] = {}
        "Labels that were given before; only those of the table, so there are few."

    def count(self, name: str, amount: float = 1.0, /, **labels: str) -> None:
        """Add to a counter.

        Raises:
            LocalError: There is no such counter, or its labels are others.
        """
        values = self._label_values(_family(name, "counter"), labels)
        found = self._counts.setdefault(name, {})
        found[values] = found.get(values, 0.0) + amount

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        """Add an observation to a histogram.

        Raises:
            LocalError: There is no such histogram, or its labels are others.
        """
        family = _family(name, "histogram")
        values = self._label_values(family, labels)
        found = self._histograms.setdefault(name, {})
        if values not in found:
            zeros = [0] * (len(family.buckets) + 1)
            found[values] = Histogram(family.buckets, zeros)
        found[values].observe(value)

    def _label_values(self, family: Family, labels: Mapping[str, str]) -> Values:
        key = family.name, *labels.items()
        values = self._checked.get(key)
        if values is None:
            values = family.label_values(labels)
            if OTHER not in values:
                self._checked[key] = values
        return values

    def watch(self, name: str, read: Callable[[], Mapping[Values, float]]) -> None:
        """Register a function that reads a gauge, or a counter that others keep.

        Args:
            read: Returns the label values, each with a number.

        Raises:
            LocalError: There is no such gauge or counter.
        """
        kind = "counter" if name.endswith("_total") else "gauge"
        _family(name, kind)
        self._readers[name] = read

    def numbers(self, family: Family) -> Mapping[Values, float]:
        """Return a counter's or a gauge's numbers by label values."""
        read = self._readers.get(family.name)
        if read is not None:
            return read()
        if family.kind == "gauge":
            return {}
        # A counter without labels is shown before anything was counted.
        return self._counts.get(family.name) or ({} if family.labels else {(): 0.0})

    def histograms(self, family: Family) -> Mapping[Values, Histogram]:
        """Return a histogram's observations by label values."""
        return self._histograms.get(family.name, {})


def _family(name: str, kind: str) -> Family:
    family = _BY_NAME.get(name)
    if family is None or family.kind != kind:
        raise LocalError(f"there is no {kind} {name}")
    return family


# The counts in the text format of Prometheus, version 0.0.4.


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

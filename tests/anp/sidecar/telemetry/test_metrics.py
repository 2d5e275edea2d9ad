"""The metrics, and their text for Prometheus."""

from __future__ import annotations

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from anp.errors import CallError, ErrorKind, LocalError
from anp.sidecar.telemetry.metrics import FAMILIES, Metrics, metrics_text
from anp.sidecar.telemetry.observer import Observer

DID = "did:wba:somebody.example"


def shown(metrics: Metrics) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Return every sample by its name and labels, as a scraper reads it."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(metrics_text(metrics).decode()):
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def test_a_counter_is_read_back_with_its_labels() -> None:
    metrics = Metrics()
    metrics.count("anpd_handshakes_total", role="requester", outcome="ok")
    metrics.count("anpd_handshakes_total", role="requester", outcome="ok")
    labels = (("outcome", "ok"), ("role", "requester"))
    assert shown(metrics)["anpd_handshakes_total"] == {labels: 2.0}


def test_a_histogram_counts_a_bound_as_below_it() -> None:
    metrics = Metrics()
    for value in (1.0, 1.1, 99.0):
        metrics.observe("anpd_negotiation_proposals", value)
    found = shown(metrics)
    buckets = found["anpd_negotiation_proposals_bucket"]
    assert buckets[("le", "1"),] == 1
    assert buckets[("le", "+Inf"),] == 3
    assert found["anpd_negotiation_proposals_count"] == {(): 3.0}
    assert found["anpd_negotiation_proposals_sum"][()] == pytest.approx(101.1)


def test_a_value_that_the_table_does_not_have_becomes_other() -> None:
    metrics = Metrics()
    for number in range(1_000):
        metrics.count(
            "anpd_calls_total",
            direction="in",
            source=f"{DID}-{number}",
            outcome="ok",
        )
    found = shown(metrics)["anpd_calls_total"]
    assert found == {
        (("direction", "in"), ("outcome", "ok"), ("source", "other")): 1_000.0
    }


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("anpd_handshakes_total", {"role": "requester"}),
        ("anpd_handshakes_total", {"role": "a", "outcome": "b", "did": DID}),
        ("anpd_connections", {}),
        ("anpd_nothing_total", {}),
    ],
)
def test_a_misspelt_metric_or_label_is_a_bug_of_ours(
    name: str, labels: dict[str, str]
) -> None:
    with pytest.raises(LocalError):
        Metrics().count(name, **labels)


def test_names_have_the_prefix_and_base_units() -> None:
    for family in FAMILIES:
        assert re.fullmatch(r"anpd_[a-z_]+", family.name)
        assert (family.kind == "counter") == family.name.endswith("_total")
        assert not re.search(r"_(ms|mib|kb|minutes)\b", family.name)
        assert "did" not in family.labels
        assert "peer" not in family.labels


def test_no_metric_can_have_more_than_a_few_hundred_series() -> None:
    for family in FAMILIES:
        series = 1
        for values in family.labels.values():
            series *= len(values) + 1
        assert series <= 400, family.name


def test_a_failed_call_counts_with_the_kind_of_its_exit_code() -> None:
    observer = Observer()
    with (
        pytest.raises(CallError),
        observer.call_out(DID, mode="auto"),
    ):
        raise CallError(ErrorKind.PEER_UNREACHABLE, "gone")
    labels = (("direction", "out"), ("outcome", "peer_unreachable"), ("source", "none"))
    found = shown(observer.metrics)
    assert found["anpd_calls_total"] == {labels: 1.0}
    assert found["anpd_call_duration_seconds_count"] == {(("direction", "out"),): 1.0}
    assert observer.flights.count == 0
    assert DID not in metrics_text(observer.metrics).decode()


def test_a_negotiation_of_ours_counts_as_a_lookup_that_found_nothing() -> None:
    observer = Observer()
    with observer.negotiation(DID, role="requester") as seen:
        seen.outcome, seen.rounds = "agreed", 2
    with observer.negotiation(DID, role="provider") as seen:
        seen.outcome = "rejected"
    found = shown(observer.metrics)
    assert found["anpd_protocol_lookups_total"] == {(("result", "miss"),): 1.0}
    assert sum(found["anpd_negotiations_total"].values()) == 2


@pytest.mark.parametrize(
    ("outcome", "label", "answers"),
    [
        ("ok", "ok", True),
        ("http_429", "http_429", False),
        ("http_404", "http_4xx", False),
        ("http_503", "http_5xx", False),
        ("silent", "silent", False),
        ("unfit", "unfit", True),
    ],
)
def test_answers_of_the_model_are_counted_in_few_kinds(
    outcome: str, label: str, answers: bool
) -> None:
    observer = Observer()
    with observer.chat("made-up", purpose="propose") as span:
        observer.model_asked(
            span, purpose="propose", outcome=outcome, input_tokens=7, output_tokens=2
        )
    found = shown(observer.metrics)
    labels = (("outcome", label), ("purpose", "propose"))
    assert found["anpd_llm_requests_total"] == {labels: 1.0}
    assert sum(found["anpd_llm_tokens_total"].values()) == 9
    assert observer.model_answers is answers


def test_a_daemon_that_stops_takes_no_new_call() -> None:
    observer = Observer()
    observer.flights.closed = True
    with (
        pytest.raises(CallError, match="stops") as caught,
        observer.call_out(DID, mode="auto"),
    ):
        pass
    assert caught.value.kind is ErrorKind.DAEMON_UNREACHABLE

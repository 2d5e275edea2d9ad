"""The exchanges that a channel keeps for repairs."""

from __future__ import annotations

from anp.sidecar.bound.exchanges import (
    MAX_AGE,
    MAX_BYTES,
    MAX_KEPT,
    Exchange,
    Exchanges,
    RecordedCall,
)
from negotiation.errors import NOT_RUN, CapabilityFailed
from tests.clauses import clause


def test_an_exchange_is_found_by_either_envelope() -> None:
    kept = Exchanges()
    exchange = Exchange(b"ask", 0.0, request_id="a", response_id="b")
    kept.keep(exchange, now=0.0)
    assert kept.find("a", now=1.0) is exchange
    assert kept.find("b", now=1.0) is exchange
    assert kept.find("c", now=1.0) is None


def test_an_empty_id_names_nothing() -> None:
    kept = Exchanges()
    kept.keep(Exchange(b"ask", 0.0), now=0.0)
    assert kept.find("", now=0.0) is None


@clause("ANP-56", "ANP-62")
def test_a_report_that_names_no_message_is_about_the_last_one_of_ours() -> None:
    kept = Exchanges()
    assert kept.latest(answered=False, now=0.0) is None
    first = Exchange(b"1", 0.0, request_id="a", response=b"", response_id="b")
    second = Exchange(b"2", 1.0, request_id="c")
    for exchange in (first, second):
        kept.keep(exchange, now=1.0)
    assert kept.latest(answered=False, now=1.0) is second
    assert kept.latest(answered=True, now=1.0) is first
    # What is answered later is the last answer, whenever it was asked.
    second.response_id = "d"
    kept.keep(second, now=2.0)
    kept.keep(first, now=3.0)
    assert kept.latest(answered=True, now=3.0) is first
    assert kept.latest(answered=True, now=MAX_AGE + 4.0) is None


def test_only_the_newest_are_kept() -> None:
    kept = Exchanges()
    for number in range(MAX_KEPT + 5):
        kept.keep(Exchange(b"x", 0.0, request_id=str(number)), now=0.0)
    assert len(kept) == MAX_KEPT
    assert kept.find("4", now=0.0) is None
    assert kept.find("5", now=0.0) is not None


def test_what_is_old_is_gone() -> None:
    kept = Exchanges()
    kept.keep(Exchange(b"x", 0.0, request_id="a"), now=0.0)
    assert kept.find("a", now=MAX_AGE) is not None
    assert kept.find("a", now=MAX_AGE + 1) is None


def test_large_messages_leave_before_the_count_is_reached() -> None:
    kept = Exchanges()
    half = bytes(MAX_BYTES // 2)
    for number in range(4):
        kept.keep(Exchange(half, 0.0, request_id=str(number)), now=0.0)
    assert len(kept) == 2
    assert kept.find("3", now=0.0) is not None


def test_sizes_are_counted_as_exchanges_come_grow_and_leave() -> None:
    kept = Exchanges()
    for number in range(3 * MAX_KEPT):
        exchange = Exchange(bytes(number), float(number), request_id=str(number))
        kept.keep(exchange, now=float(number))
        if number % 3 == 0:
            # Grown between two calls, and counted when it is kept anew.
            exchange.response = bytes(100)
            kept.keep(exchange, now=float(number))
        assert kept.size == sum(one.size for one in kept)
    assert kept.find("none", now=3 * MAX_KEPT + MAX_AGE) is None
    assert (len(kept), kept.size) == (0, 0)


def test_an_exchange_that_grew_counts_once() -> None:
    kept = Exchanges()
    exchange = Exchange(b"ask", 0.0, request_id="a")
    kept.keep(exchange, now=0.0)
    exchange.response, exchange.response_id = b"answer", "b"
    kept.keep(exchange, now=0.0)
    assert len(kept) == 1
    assert kept.find("b", now=0.0) is exchange


def test_an_answer_must_not_pass_on_that_nothing_ran_when_something_did() -> None:
    away = CapabilityFailed("503", "away", ran=False)
    said = f'{{"message": "{away.told}"}}'.encode()
    exchange = Exchange(b"ask", 0.0)
    exchange.calls.append(RecordedCall("a", {}, failure=away))
    assert not exchange.claims_too_much(said)
    # The half went on, and another capability ran.
    exchange.ran = True
    exchange.calls.append(RecordedCall("b", {}, output={}))
    assert exchange.claims_too_much(said)
    assert not exchange.claims_too_much(b'{"message": "fine"}')
    # The same words in an output, without such a failure, are nobody's claim.
    exchange.calls.pop(0)
    assert not exchange.claims_too_much(said)


def test_a_tool_cannot_say_for_the_daemon_that_nothing_ran() -> None:
    assert not CapabilityFailed("500", f"{NOT_RUN}honestly").told.startswith(NOT_RUN)
    assert CapabilityFailed("500", "as it is").told == "as it is"
    assert CapabilityFailed("503", "away", ran=False).told == f"{NOT_RUN}away"


def test_a_lean_exchange_holds_nothing_that_was_handed_over() -> None:
    exchange = Exchange(b"ask", 0.0, values={"a": 1}, lean=True)
    assert exchange.hand_over() == (b"ask", {"a": 1})
    assert exchange.hand_over() == (b"", None)


def test_an_exchange_is_dropped_with_its_size() -> None:
    kept, exchange = Exchanges(), Exchange(b"ask", 0.0, request_id="a")
    kept.drop(exchange)
    kept.keep(exchange, now=0.0)
    kept.drop(exchange)
    assert (len(kept), kept.size, kept.find("a", now=0.0)) == (0, 0, None)


def test_no_exchange_holds_values_which_are_larger_than_the_bytes_that_count() -> None:
    exchange = Exchange(b"[[],[],[]]", 0.0, values=[[], [], []])
    assert exchange.hand_over() == (b"[[],[],[]]", [[], [], []])
    assert exchange.hand_over() == (b"[[],[],[]]", None)

"""Which line carries a session, and when its peer has forgotten it for sure."""

from __future__ import annotations

from dataclasses import dataclass

from anp.sidecar.tasks.delivery.ways import DAY, PATIENCE, SessionWays

GBZ, OTHER = "urn:anpd:gbz-185.6:1", "urn:anpd:message-envelope:1.1"


@dataclass(eq=False)
class Wire:
    """A line, as far as it is looked at."""

    number: int
    uri: str = GBZ
    takes_sessions: bool = True


def wire(ways: SessionWays, uri: str = GBZ, *, takes_sessions: bool = True) -> Wire:
    return Wire(ways.number(), uri, takes_sessions)


def test_a_session_goes_over_the_line_on_which_it_was_heard_last() -> None:
    ways = SessionWays()
    lines = [wire(ways), wire(ways), wire(ways)]
    assert ways.choose("log", lines, is_ours=False) is lines[2]
    ways.heard("log", lines[0])
    assert ways.choose("log", lines, is_ours=False) is lines[0]
    ways.heard("log", lines[1])
    assert ways.choose("log", lines, is_ours=False) is lines[1]
    # When that one is gone, any other may do.
    assert ways.choose("log", [lines[0], lines[2]], is_ours=False) is lines[2]


def test_a_line_that_refused_a_session_gets_it_no_more_until_it_is_heard_there() -> (
    None
):
    ways = SessionWays()
    lines = [wire(ways), wire(ways)]
    ways.refused("log", lines[1], peer="did:b", now=0.0)
    assert ways.choose("log", lines, is_ours=False) is lines[0]
    assert ways.choose("another", lines, is_ours=False) is lines[1]
    ways.refused("log", lines[0], peer="did:b", now=0.0)
    assert ways.choose("log", lines, is_ours=False) is None
    ways.heard("log", lines[1])
    assert ways.choose("log", lines, is_ours=False) is lines[1]


def test_a_session_of_ours_goes_over_no_line_that_may_have_calls_alone() -> None:
    ways = SessionWays()
    ours, theirs = wire(ways), wire(ways, takes_sessions=False)
    assert ways.choose("log", [ours, theirs], is_ours=True) is ours
    assert ways.choose("log", [theirs], is_ours=True) is None
    ways.heard("log", theirs)
    assert ways.choose("log", [ours, theirs], is_ours=True) is theirs


def test_the_protocol_in_which_the_peer_spoke_is_preferred() -> None:
    ways = SessionWays()
    lines = [wire(ways), wire(ways, OTHER)]
    assert ways.choose("log", lines, uri=GBZ, is_ours=False) is lines[0]


def test_a_session_is_lost_when_a_later_handshake_is_no_better_either() -> None:
    ways = SessionWays()
    lines = [wire(ways), wire(ways)]
    for one in lines:
        ways.refused("log", one, peer="did:b", now=0.0)
    late = PATIENCE + 1
    assert ways.lost(lambda _: lines, now=late) == []
    lines = [wire(ways)]
    assert ways.lost(lambda _: lines, now=late) == []
    ways.refused("log", lines[0], peer="did:b", now=1.0)
    assert ways.lost(lambda _: lines, now=PATIENCE - 1) == []
    assert ways.lost(lambda _: lines, now=late) == [("log", "did:b")]
    lines.append(wire(ways))
    assert ways.lost(lambda _: lines, now=late) == []
    ways.heard("log", lines[1])
    assert ways.lost(lambda _: [], now=2 * DAY) == []


def test_a_session_is_lost_after_a_day_without_any_handshake() -> None:
    ways = SessionWays()
    ways.refused("log", wire(ways), peer="did:b", now=0.0)
    assert ways.lost(lambda _: [], now=DAY - 1) == []
    assert ways.lost(lambda _: [], now=DAY) == [("log", "did:b")]

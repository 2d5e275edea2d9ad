"""ISO 8601 date-times."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.protocols.timestamps import read_timestamp, write_timestamp
from tests.clauses import clause

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@clause("ENV-10", "ENV-Q10")
@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21T12:00:00Z",
        "2026-11-21T12:00:00.000000000Z",
        "2026-11-21T12:00:00,0Z",
        "2026-11-21t12:00z",
        "2026-11-21T12Z",
        "20261121T120000Z",
        "20261121T1200Z",
        "2026-11-21T14:00:00+02:00",
        "2026-11-21T14:00:00+0200",
        "2026-11-21T02:00-10",
        "2026-325T12:00Z",
        "2026325T12Z",
        "2026-W47-6T12:00:00Z",
        "2026W476T120000Z",
        "2026-11-21T11:59:60Z",
        "2026-11-20T24:00+12:00",
    ],
)
def test_every_form_of_a_date_time_is_read(text: str) -> None:
    if text.startswith("2026-11-20T24"):
        assert read_timestamp(text).at == datetime(2026, 11, 20, 12, tzinfo=UTC)
    else:
        assert read_timestamp(text).at == NOON
    assert read_timestamp(text).zoned


@clause("ENV-10", "ENV-Q10")
def test_without_a_zone_it_is_utc_and_says_so() -> None:
    assert read_timestamp("2026-11-21T12:00:00").at == NOON
    assert not read_timestamp("2026-11-21T12:00:00").zoned


@clause("ENV-10", "ENV-Q10")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "T",
        "2026-11-21",
        "2026-11-21T",
        "2026-11-21 12:00:00Z",
        "2026-02-29T12:00:00Z",
        "2026-13-01T12:00:00Z",
        "2026-000T12:00Z",
        "2026-366T12:00Z",
        "2026-W54-1T12:00Z",
        "2026-W01-0T12:00Z",
        "0000-01-01T00:00Z",
        "2026-11-21T25:00Z",
        "2026-11-21T24:01Z",
        "2026-11-21T24:00:00.1Z",
        "2026-11-21T12:60Z",
        "2026-11-21T12:00:61Z",
        "2026-11-21T12:00:00+24:00",
        "2026-11-21T12:00:00+01:60",
        "2026-11-21T1200:00Z",
        "9999-12-31T24:00Z",
        "0001-01-01T00:00+01:00",
        "1795262400",
        "２026-11-21T12:00:00Z",
        "2026-11-21T12:00:00Z\n",
    ],
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_timestamp(text)


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_we_write_is_read_back_to_the_millisecond(at: datetime) -> None:
    again = read_timestamp(write_timestamp(at))
    assert again.zoned
    assert 0 <= (at - again.at).total_seconds() < 0.001


@given(st.text(alphabet="0123456789-+:.,TZW \n", max_size=40))
def test_any_text_is_a_moment_or_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert read_timestamp(text).at.tzinfo is UTC

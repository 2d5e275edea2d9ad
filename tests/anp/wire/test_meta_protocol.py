"""The `metaProtocol` of hellos."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.errors import ErrorCode, PeerError
from anp.wire.meta_protocol import CAPABILITIES, MetaProtocol
from tests.clauses import clause

HASH = "0123456789abcdef" * 4
OTHER = "f" * 64
URI = "https://example.com/protocol/1.0"

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
FIELDS = [
    "version",
    "supportedCapabilities",
    "usedProtocolHash",
    "protocolHash",
    "candidateProtocols",
    "selectedProtocol",
    "extensions",
]


@clause("ANP-77", "ANP-Q16", "WIRE row 22", "WIRE row 23", "WIRE row 54")
@pytest.mark.parametrize("value", [None, {}, {"version": None}, {"protocolHash": None}])
def test_a_missing_meta_protocol_means_basic_capabilities_and_no_agreement(
    value: Any,
) -> None:
    assert MetaProtocol.from_json(value) == MetaProtocol(
        version="1.0",
        supported_capabilities=(),
        used_protocol_hash=None,
        candidate_protocols=(),
        selected_protocol=None,
        extensions=(),
    )


@clause("ANP-76", "ANP-79")
def test_everything_that_is_sent_is_read_again() -> None:
    meta = MetaProtocol(
        supported_capabilities=CAPABILITIES,
        used_protocol_hash=HASH,
        candidate_protocols=(URI, URI + "/b"),
        selected_protocol=URI,
        extensions=("close", "counter"),
    )
    assert MetaProtocol.from_json(meta.to_json()) == meta


@clause("ANP-76", "ANP-78", "ANP-87")
def test_what_is_absent_is_not_sent() -> None:
    assert MetaProtocol().to_json() == {"version": "1.0", "supportedCapabilities": []}


@clause("ANP-79", "ANP-Q16")
def test_unknown_capabilities_and_fields_are_ignored() -> None:
    meta = MetaProtocol.from_json(
        {"supportedCapabilities": ["telepathy", "verificationProtocol"], "x": 1}
    )
    assert meta == MetaProtocol(supported_capabilities=("verificationProtocol",))


@clause("ANP-81")
def test_only_what_both_sides_listed_is_common() -> None:
    one = MetaProtocol(supported_capabilities=CAPABILITIES[:3], extensions=("close",))
    two = MetaProtocol(supported_capabilities=CAPABILITIES[2:], extensions=("close",))
    assert one.common_capabilities(two) == {CAPABILITIES[2]}
    assert one.common_extensions(two) == {"close"}
    assert one.common_extensions(MetaProtocol()) == frozenset()


@clause("ANP-82", "ANP-Q1", "ANP-Q7", "WIRE row 24")
@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({"usedProtocolHash": HASH}, HASH),
        ({"usedProtocolHash": HASH.upper()}, HASH),
        ({"usedProtocolHash": "sha256:" + HASH}, HASH),
        ({"protocolHash": HASH}, HASH),
        ({"protocolHash": HASH, "usedProtocolHash": None}, HASH),
        ({"protocolHash": HASH.upper(), "usedProtocolHash": HASH}, HASH),
        ({"protocolHash": OTHER, "usedProtocolHash": HASH}, None),
        ({"usedProtocolHash": HASH[1:]}, None),
        ({"usedProtocolHash": HASH + "0"}, None),
        ({"usedProtocolHash": "g" + HASH[1:]}, None),
        ({"usedProtocolHash": HASH + "\n"}, None),
        ({"usedProtocolHash": 7}, None),
    ],
)
def test_the_hash_is_read_under_both_names_or_not_at_all(
    value: dict[str, Any], read: str | None
) -> None:
    meta = MetaProtocol.from_json(value)
    assert meta.used_protocol_hash == read
    assert bool(meta.remarks) == (read is None)


@clause("ANP-Q1")
def test_the_alias_is_never_sent() -> None:
    meta = MetaProtocol.from_json({"protocolHash": HASH})
    assert "protocolHash" not in meta.to_json()


@clause("ANP-78", "ANP-Q15")
@pytest.mark.parametrize(
    "value", [{"version": v} for v in ("1.0", "1.1", "1.73", "2.0", "11.0", None)]
)
def test_with_every_speaker_of_1_0_or_more_we_use_1_0(value: dict[str, Any]) -> None:
    assert MetaProtocol.from_json(value).common_version() == "1.0"


@clause("ANP-78", "ANP-80", "ANP-Q15")
@pytest.mark.parametrize("version", ["0.9", "1", "", "one", "1.0.0\n"])
def test_a_version_below_ours_is_refused_with_a_reason(
    version: str,
) -> None:
    with pytest.raises(PeerError, match=r"we speak 1\.0") as caught:
        MetaProtocol.from_json({"version": version}).common_version()
    assert caught.value.code is ErrorCode.INVALID_ENCRYPTION_KEY


@clause("ANP-80", "ANP-Q15")
@pytest.mark.parametrize(
    ("offered", "answered"), [("1.0", "1.0"), ("2.0", "2.0"), ("2.0", "1.0")]
)
def test_an_answer_names_a_version_we_speak_up_to_the_one_offered(
    offered: str, answered: str
) -> None:
    ours = ["1.0", "2.0"]
    MetaProtocol(answered).check_answer(MetaProtocol(offered), ours)


@clause("ANP-80", "ANP-Q15")
@pytest.mark.parametrize(
    ("offered", "answered", "why"),
    [
        ("1.0", "2.0", "offered was '1.0'"),
        ("2.0", "3.0", "we speak 1.0, 2.0"),
        ("2.0", "1.1", "we speak 1.0, 2.0"),
        ("2.0", "", "we speak 1.0, 2.0"),
    ],
)
def test_an_answer_with_a_version_unknown_or_higher_than_offered_is_refused(
    offered: str, answered: str, why: str
) -> None:
    with pytest.raises(PeerError, match=why) as caught:
        MetaProtocol(answered).check_answer(MetaProtocol(offered), ["1.0", "2.0"])
    assert caught.value.code is ErrorCode.INVALID_ENCRYPTION_KEY


@clause("ANP-86", "ANP-87", "ANP-Q19")
@pytest.mark.parametrize(
    "answer",
    [
        MetaProtocol(),
        MetaProtocol(used_protocol_hash=HASH),
        MetaProtocol(selected_protocol=URI),
    ],
)
def test_an_answer_confirms_what_was_offered_or_nothing(answer: MetaProtocol) -> None:
    answer.check_answer(
        MetaProtocol(used_protocol_hash=HASH, candidate_protocols=(URI,))
    )


@clause("ANP-86", "ANP-Q19")
@pytest.mark.parametrize(
    ("answer", "offer"),
    [
        (
            MetaProtocol(used_protocol_hash=HASH, selected_protocol=URI),
            MetaProtocol(used_protocol_hash=HASH, candidate_protocols=(URI,)),
        ),
        (MetaProtocol(used_protocol_hash=OTHER), MetaProtocol(used_protocol_hash=HASH)),
        (MetaProtocol(used_protocol_hash=HASH), MetaProtocol()),
        (MetaProtocol(selected_protocol=URI), MetaProtocol()),
        (
            MetaProtocol(selected_protocol=URI + "x"),
            MetaProtocol(candidate_protocols=(URI,)),
        ),
    ],
)
def test_any_other_answer_is_a_protocol_error(
    answer: MetaProtocol, offer: MetaProtocol
) -> None:
    with pytest.raises(PeerError):
        answer.check_answer(offer)


@pytest.mark.parametrize("value", [7, ["close", 7], {"close": True}])
def test_extensions_of_another_shape_belong_to_somebody_else(value: Any) -> None:
    meta = MetaProtocol.from_json({"extensions": value})
    assert meta.extensions == ()
    assert meta.remarks


@given(st.dictionaries(st.sampled_from(FIELDS), JSON) | JSON)
def test_any_json_is_read_or_refused(value: Any) -> None:
    try:
        meta = MetaProtocol.from_json(value)
        meta.common_version()
    except PeerError:
        return
    assert MetaProtocol.from_json(meta.to_json()) == meta

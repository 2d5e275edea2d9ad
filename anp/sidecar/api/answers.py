"""What the local API answers, as JSON Schemas (2020-12, as OpenAPI 3.1 has them)."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["SCHEMAS", "answer_of", "ref"]

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
NUMBER: Final[Schema] = {"type": "number"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
FLAG: Final[Schema] = {"type": "boolean"}
OBJECT: Final[Schema] = {"type": "object"}
ANY: Final[Schema] = {}
HASH: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
ROLE: Final[Schema] = {"enum": ["requester", "provider"]}
STATE: Final[Schema] = {
    "enum": ["active", "stale", "revoked", "testing", "failed", "quarantined"]
}


def ref(name: str) -> Schema:
    """Return a reference to one of `SCHEMAS`."""
    return {"$ref": f"#/components/schemas/{name}"}


def maybe(schema: Schema) -> Schema:
    """Return the schema of a value or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def some(schema: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": schema}


def shape(**fields: Schema) -> Schema:
    """Return the schema of an object with these fields, and perhaps later ones."""
    return {"type": "object", "properties": fields, "required": [*fields]}


def extended(schema: Schema, **fields: Schema) -> Schema:
    """Return the schema of an object with more fields, that need not be there."""
    return {**schema, "properties": {**schema["properties"], **fields}}


def answer_of(**fields: Schema) -> Schema:
    """Return the schema of a small answer that no other operation shares."""
    return shape(**fields)


PAGE: Final = {"next": maybe(TEXT)}
"What a list has besides its entries: `after` for the next page, or null at the end."

CALL_RESULT = shape(
    output=ANY,
    protocol=maybe(HASH),
    source={"enum": ["agreement", "consensus", "negotiated", "natural_language"]},
    negotiation_messages=COUNT,
    rounds=COUNT,
    peer_did=TEXT,
    negotiation_id=maybe(TEXT),
    uri=maybe(TEXT),
    llm_calls=COUNT,
    cost=NUMBER,
    ms=NUMBER,
    timeline=some(shape(what=TEXT, ms=NUMBER)),
)

PROBLEM = extended(
    shape(
        type=TEXT,
        title=TEXT,
        status={"type": "integer", "minimum": 400, "maximum": 599},
        detail=TEXT,
        kind=TEXT,
    ),
    may_have_run=FLAG,
    retry_after=NUMBER,
)

CALL = shape(
    id=TEXT,
    state={"enum": ["running", "waiting", "done", "failed", "cancelled"]},
    peer=TEXT,
    task=TEXT,
    created=NUMBER,
    ended=maybe(NUMBER),
    next_attempt=maybe(NUMBER),
    negotiations=some(TEXT),
    result=maybe(ref("CallResult")),
    problem=maybe(ref("Problem")),
)

NEGOTIATION = shape(
    id=TEXT,
    own_did=maybe(TEXT),
    peer=TEXT,
    role=ROLE,
    task=maybe(OBJECT),
    about=TEXT,
    outcome=TEXT,
    running=FLAG,
    waiting=FLAG,
    reason=TEXT,
    hash=maybe(HASH),
    started=NUMBER,
    ended=maybe(NUMBER),
    rounds=COUNT,
    model_calls=COUNT,
    tests=maybe(OBJECT),
    decision=maybe(OBJECT),
)

AGREEMENT = shape(
    hash=HASH,
    role=ROLE,
    peer=maybe(TEXT),
    task=maybe(TEXT),
    origin=maybe(TEXT),
    state=STATE,
    samples=maybe(TEXT),
    uses=COUNT,
    created=NUMBER,
    last_used=maybe(NUMBER),
    revision=COUNT,
    negotiation_id=maybe(TEXT),
    cases=TEXT,
    reason=TEXT,
    model=TEXT,
    last_run=maybe(OBJECT),
    quarantined=maybe(TEXT),
)

HALF = shape(
    hash=HASH,
    role=ROLE,
    revision=COUNT,
    source=TEXT,
    origin=TEXT,
    capabilities=OBJECT,
    created=NUMBER,
    state=STATE,
    reason=TEXT,
    agreements=COUNT,
)

CAPABILITY = shape(
    name=TEXT,
    description=TEXT,
    input_schema=OBJECT,
    output_schema=OBJECT,
    read_only=FLAG,
    idempotent=FLAG,
)

PEER = shape(
    did=TEXT,
    state={"enum": ["unknown", "waiting", "allowed", "blocked"]},
    first_seen=NUMBER,
    last_seen=NUMBER,
    names=some(TEXT),
    urls=some(TEXT),
    aliases=some(TEXT),
)

HEARD = shape(
    number=COUNT,
    at=NUMBER,
    peer_did=TEXT,
    uri=TEXT,
    kind={"enum": ["event", "notice", "message", "announcement", "withdrawal"]},
    name=TEXT,
    data=ANY,
    size=COUNT,
)

DECISION = shape(
    id=TEXT,
    peer_did=TEXT,
    role=ROLE,
    verdict={"enum": ["accept", "reject", "edit", "hint", "offer"]},
    created=NUMBER,
    expires=NUMBER,
    hash=maybe(HASH),
    document=maybe(TEXT),
    note=TEXT,
    negotiation_id=maybe(TEXT),
    used=maybe(NUMBER),
    used_by=maybe(TEXT),
)

RUNS = shape(outcomes=OBJECT, failures=some(OBJECT), log=TEXT)

TOTAL = dict.fromkeys(("calls", "input_tokens", "output_tokens", "held_tokens"), COUNT)

SCHEMAS: Final[dict[str, Schema]] = {
    "Problem": PROBLEM,
    "CallResult": CALL_RESULT,
    "Call": CALL,
    "Info": shape(
        version=TEXT,
        did=TEXT,
        canonical_did=TEXT,
        url=TEXT,
        address=TEXT,
        home=TEXT,
        started=NUMBER,
        peers_policy=TEXT,
        mind=TEXT,
        extensions=some(TEXT),
        tasks=some(shape(name=TEXT, requirement=TEXT)),
        address_book=some(shape(name=TEXT, did=maybe(TEXT), url=maybe(TEXT))),
        links=COUNT,
        sandbox=shape(level=TEXT, layers=some(OBJECT)),
        attachments=some(OBJECT),
    ),
    "Health": extended(shape(status=TEXT), attachments=OBJECT),
    "Capability": extended(CAPABILITY, exposed=FLAG),
    "Capabilities": shape(capabilities=some(ref("Capability"))),
    "Agreement": AGREEMENT,
    "Half": HALF,
    "Protocols": shape(protocols=some(ref("Agreement")), usage=ref("Usage"), **PAGE),
    "Usage": shape(
        calls=COUNT,
        agreement=COUNT,
        consensus=COUNT,
        negotiated=COUNT,
        hit_rate=maybe(NUMBER),
        natural_language=COUNT,
        failed=COUNT,
        served=COUNT,
        first_used=maybe(NUMBER),
        last_used=maybe(NUMBER),
    ),
    "Protocol": shape(
        hash=HASH,
        agreements=some(ref("Agreement")),
        halves=some(ref("Half")),
        tests=some(OBJECT),
        usage=ref("Usage"),
        revocations=some(OBJECT),
        uris=some(TEXT),
        quarantined=maybe(TEXT),
        runs=RUNS,
        trials=RUNS,
    ),
    "Negotiation": extended(
        NEGOTIATION,
        turns=some(OBJECT),
        verdicts=some(OBJECT),
        hints=some(TEXT),
        exchanges=some(OBJECT),
        pending=maybe(OBJECT),
        decisions=some(ref("Decision")),
        agreement=maybe(OBJECT),
    ),
    "Negotiations": shape(negotiations=some(ref("Negotiation")), **PAGE),
    "Decision": DECISION,
    "Decisions": shape(decisions=some(ref("Decision"))),
    "Said": shape(applied=TEXT, decision=maybe(ref("Decision"))),
    "Peer": extended(PEER, changed_keys=some(TEXT)),
    "Peers": shape(peers=some(ref("Peer")), **PAGE),
    "Heard": HEARD,
    "PeerState": shape(did=TEXT, state=TEXT),
    "Offers": shape(
        peer_did=maybe(TEXT),
        url=maybe(TEXT),
        publishes=FLAG,
        protocols=some(
            shape(
                uri=TEXT,
                version=TEXT,
                hash=HASH,
                summary=TEXT,
                capabilities=some(ref("Capability")),
            )
        ),
        agreements=some(ref("Agreement")),
    ),
    "Spend": shape(
        model=maybe(TEXT),
        today=TEXT,
        since=TEXT,
        until=TEXT,
        priced=FLAG,
        total=shape(**TOTAL, cost=NUMBER),
        accounts=some(OBJECT),
        days=some(OBJECT),
        peers=some(OBJECT),
        steps=some(OBJECT),
        ledger_calls=COUNT,
        calls=some(OBJECT),
    ),
    "Known": shape(publishes=FLAG, protocols=some(OBJECT)),
    "Published": shape(uri=TEXT, hash=HASH, version=TEXT, listed=FLAG),
    "Imported": shape(
        hash=HASH,
        halves=some(
            shape(
                role=ROLE,
                revision=COUNT,
                origin=TEXT,
                capabilities=some(TEXT),
                peers=some(TEXT),
                replaced=some(ANY),
            )
        ),
    ),
}
"Every answer with a name."

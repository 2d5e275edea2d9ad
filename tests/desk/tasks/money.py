"""Tasks over the documents of Frankfurter (exchange rates) and Stripe (charges)."""

from __future__ import annotations

from tests.desk.tasks.task import (
    Absent,
    Case,
    Failure,
    Fault,
    Json,
    Task,
    Tool,
    array,
    boolean,
    choice,
    complete,
    integer,
    mapping,
    number,
    open_object,
    text,
)

RATES = "Frankfurter, OpenAPI document of api.frankfurter.dev (MIT)"
STRIPE = "Stripe, charges of its API reference and OpenAPI document (MIT)"

PER_EURO = {"EUR": 1.0, "USD": 1.25, "NOK": 10.0, "JPY": 160.0, "GBP": 0.8}


def _latest(given: Json) -> Json:
    base = given.get("base", "EUR")
    if base not in PER_EURO:
        raise Fault(404, "not found")
    wanted = given.get("symbols", ",".join(PER_EURO)).split(",")
    rates = {
        one: round(PER_EURO[one] / PER_EURO[base], 6)
        for one in wanted
        if one in PER_EURO and one != base
    }
    return {"base": base, "date": "2026-02-27", "rates": rates}


def _charge(number: int, amount: int, currency: str, **more: object) -> Json:
    return {
        "id": f"ch_{number}",
        "object": "charge",
        "amount": amount,
        "amount_refunded": 0,
        "currency": currency,
        "created": 1_767_225_600 + 86_400 * number,
        "status": "succeeded",
        "refunded": False,
        "customer": None,
        **more,
    }


CHARGES = [
    _charge(1, 1250, "eur", customer="cus_Anna", description="Lamp"),
    _charge(2, 99, "usd", status="pending"),
    _charge(3, 700_000, "gbp", customer="cus_Ben", status="failed"),
    _charge(4, 4000, "eur", customer="cus_Eve", refunded=True, amount_refunded=4000),
    _charge(5, 31_405, "usd", amount_refunded=405, description=None),
    _charge(6, 5, "eur", description="Stamp"),
    _charge(7, 8820, "gbp", customer="cus_Kim"),
]


def _retrieve(given: Json) -> Json:
    for one in CHARGES:
        if one["id"] == given["charge"]:
            return one
    raise Fault(404, f"No such charge: {given['charge']}")


def _list(given: Json) -> Json:
    owner, after = given.get("customer"), given.get("starting_after")
    rows = [one for one in CHARGES if owner in {None, one["customer"]}]
    if after is not None:
        rows = rows[[one["id"] for one in rows].index(after) + 1 :]
    most = min(given.get("limit", 10), 3)
    return {
        "object": "list",
        "data": rows[:most],
        "has_more": len(rows) > most,
        "url": "/v1/charges",
    }


LATEST = Tool(
    "rates",
    "get-latest-rates",
    "Returns the latest exchange rates relative to the base currency; the European "
    "Central Bank publishes one reference rate each working day.",
    open_object(
        base=text("Base currency, default EUR", default="EUR"),
        symbols=text("Comma-separated currencies, default all"),
    ),
    open_object(
        base=text(),
        date=text("Day of the rates", format="date"),
        rates=mapping(number(), "Rate for each currency code"),
    ),
    _latest,
)
CHARGE = open_object(
    *("id", "object", "amount", "amount_refunded", "currency", "created"),
    *("status", "refunded"),
    id=text("Unique identifier"),
    object=choice("charge"),
    amount=integer("In the smallest currency unit, e.g. 100 cents for $1.00"),
    amount_refunded=integer("In cents refunded"),
    currency=text("Three-letter ISO currency code, in lowercase"),
    created=integer("Seconds since the Unix epoch"),
    status=choice("succeeded", "pending", "failed"),
    refunded=boolean("Whether the charge has been fully refunded"),
    customer={"type": ["string", "null"], "description": "ID of the customer"},
    description={"type": ["string", "null"]},
)
RETRIEVE = Tool(
    "stripe",
    "GetChargesCharge",
    "Retrieves the details of a charge; 404 if there is none.",
    open_object("charge", charge=text("ID of the charge")),
    CHARGE,
    _retrieve,
)
LIST = Tool(
    "stripe",
    "GetCharges",
    "Returns a list of charges, a page at a time. While has_more is true, the next "
    "page begins after the charge whose ID is given as starting_after.",
    open_object(
        customer=text("Only charges of this customer ID"),
        limit=integer("Between 1 and 100, default 10; at most 3 come on this account"),
        starting_after=text("ID of the last charge of the page before"),
    ),
    open_object(
        *("object", "data", "has_more", "url"),
        object=choice("list"),
        data=array(CHARGE),
        has_more=boolean(),
        url=text(),
    ),
    _list,
)

TASKS = (
    Task(
        "one-rate",
        RATES,
        "How many units of one currency a unit of another one buys, and the day of "
        "that rate",
        complete(have=text("ISO 4217 code"), want=text("ISO 4217 code")),
        complete(factor=number(), asOf=text("YYYY-MM-DD", format="date")),
        (LATEST,),
        (
            Case(
                {"have": "EUR", "want": "NOK"}, {"factor": 10.0, "asOf": "2026-02-27"}
            ),
            Case({"have": "USD", "want": "NOK"}, {"factor": 8.0, "asOf": "2026-02-27"}),
            Case({"have": "GBP", "want": "XXX"}, Absent()),
            Case(
                {"have": "NOK", "want": "JPY"}, {"factor": 16.0, "asOf": "2026-02-27"}
            ),
        ),
    ),
    Task(
        "change-money",
        RATES,
        "Value of a sum in another currency at the latest reference rate, not rounded",
        complete(sum=number(), of=text("currency code"), into=text("currency code")),
        complete(worth=number("in the currency `into`")),
        (LATEST,),
        (
            Case({"sum": 12.5, "of": "EUR", "into": "USD"}, {"worth": 15.625}),
            Case({"sum": 80, "of": "GBP", "into": "EUR"}, {"worth": 100.0}),
            Case({"sum": 3, "of": "USD", "into": "JPY"}, {"worth": 384.0}),
            Case({"sum": 0, "of": "NOK", "into": "EUR"}, {"worth": 0}),
        ),
    ),
    Task(
        "bid-and-ask",
        RATES,
        "Quote for a pair of currencies: the price a dealer buys at and the price it "
        "sells at",
        complete(pair=text("such as EUR/USD")),
        complete(bid=number(), ask=number()),
        (LATEST,),
        (Case({"pair": "EUR/USD"}, None),),
        lacking="there is one reference rate, and neither bid nor ask",
    ),
    Task(
        "rate-at-minute",
        RATES,
        "Exchange rate from one currency to another at a given minute of today's "
        "trading",
        complete(
            **{"from": text(), "to": text()}, minute=text("such as 2026-02-27T14:05Z")
        ),
        complete(rate=number("rate at that very minute")),
        (LATEST,),
        (Case({"from": "EUR", "to": "USD", "minute": "2026-02-27T14:05Z"}, None),),
        lacking="rates are published once a day",
    ),
    Task(
        "receipt",
        STRIPE,
        "A payment by its number: the amount in whole units of the currency (12.5 for "
        "1250 cents), the currency in capitals, and when it was made, in UTC, written "
        "as 2026-01-31T00:00:00Z",
        complete(paymentNo=text()),
        complete(amount=number(), currency=text(), madeAt=text(format="date-time")),
        (RETRIEVE, LIST),
        (
            Case(
                {"paymentNo": "ch_1"},
                {"amount": 12.5, "currency": "EUR", "madeAt": "2026-01-02T00:00:00Z"},
            ),
            Case(
                {"paymentNo": "ch_3"},
                {"amount": 7000, "currency": "GBP", "madeAt": "2026-01-04T00:00:00Z"},
            ),
            Case({"paymentNo": "ch_99"}, Failure(404)),
            Case(
                {"paymentNo": "ch_6"},
                {"amount": 0.05, "currency": "EUR", "madeAt": "2026-01-07T00:00:00Z"},
            ),
        ),
    ),
    Task(
        "payer",
        STRIPE,
        "Who paid: the customer and the text of one payment",
        complete(payment=text("number of the payment")),
        complete(payer=text("customer's number"), purpose=text("text of the payment")),
        (RETRIEVE,),
        (
            Case({"payment": "ch_1"}, {"payer": "cus_Anna", "purpose": "Lamp"}),
            Case({"payment": "ch_7"}, Absent()),
            Case({"payment": "ch_5"}, Absent()),
            Case({"payment": "ch_6"}, Absent()),
        ),
    ),
    Task(
        "payment-state",
        STRIPE,
        "State of a payment: PAID when the money came, OPEN while it is under way, "
        "LOST when it failed",
        complete(no=text("number of the payment")),
        complete(no=text(), state=choice("PAID", "OPEN", "LOST")),
        (RETRIEVE,),
        (
            Case({"no": "ch_1"}, {"no": "ch_1", "state": "PAID"}),
            Case({"no": "ch_2"}, {"no": "ch_2", "state": "OPEN"}),
            Case({"no": "ch_3"}, {"no": "ch_3", "state": "LOST"}),
            Case({"no": "ch_7"}, {"no": "ch_7", "state": "PAID"}),
        ),
    ),
    Task(
        "refunded-is-gone",
        STRIPE,
        "Cents of a payment. One that was paid back in full is answered with the error "
        "410, never with an amount",
        complete(payment=text()),
        complete(cents=integer()),
        (RETRIEVE,),
        (
            Case({"payment": "ch_1"}, {"cents": 1250}),
            Case({"payment": "ch_4"}, Failure(410)),
            Case({"payment": "ch_5"}, {"cents": 31_405}),
            Case({"payment": "ch_0"}, Failure(404)),
        ),
    ),
    Task(
        "all-payments",
        STRIPE,
        "The numbers of all payments there are, on every page, oldest first",
        complete(),
        complete(payments=array(text("number of the payment"))),
        (LIST,),
        tuple(
            Case({}, {"payments": [f"ch_{number}" for number in range(1, 8)]})
            for _ in range(4)
        ),
    ),
    Task(
        "several-payments",
        STRIPE,
        "Cents of several payments at once, in the order in which they were asked for",
        complete(payments=array(text("number of the payment"))),
        complete(cents=array(integer())),
        (RETRIEVE,),
        (
            Case({"payments": ["ch_2", "ch_1"]}, {"cents": [99, 1250]}),
            Case({"payments": ["ch_7"]}, {"cents": [8820]}),
            Case({"payments": []}, {"cents": []}),
            Case({"payments": ["ch_6", "ch_5", "ch_6"]}, {"cents": [5, 31_405, 5]}),
        ),
    ),
    Task(
        "ledger-line",
        STRIPE,
        "Look up a payment. Our ledger speaks no JSON: each message is one line of "
        "text whose fields are separated by semicolons. The request is "
        "Q;<payment number>, the answer A;<payment number>;<cents>;<currency>, for "
        "example Q;ch_1 and A;ch_1;1250;eur",
        complete(payment=text()),
        complete(payment=text(), cents=integer(), currency=text()),
        (RETRIEVE,),
        (
            Case(
                {"payment": "ch_1"},
                {"payment": "ch_1", "cents": 1250, "currency": "eur"},
            ),
            Case(
                {"payment": "ch_5"},
                {"payment": "ch_5", "cents": 31_405, "currency": "usd"},
            ),
            Case(
                {"payment": "ch_3"},
                {"payment": "ch_3", "cents": 700_000, "currency": "gbp"},
            ),
            Case(
                {"payment": "ch_6"}, {"payment": "ch_6", "cents": 5, "currency": "eur"}
            ),
        ),
        request_bytes=r"Q;ch_\d+\n?",
        answer_bytes=r"A;ch_\d+;\d+;[a-z]{3}\n?",
    ),
    Task(
        "value-added-tax",
        STRIPE,
        "Split of a payment into its net amount and its value added tax, in cents",
        complete(payment=text()),
        complete(netCents=integer(), taxCents=integer()),
        (RETRIEVE,),
        (Case({"payment": "ch_1"}, None),),
        lacking="a charge has no tax, and no rate is given",
    ),
)

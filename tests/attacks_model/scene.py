"""Two daemons, an obedient model on one side, and an attacker on the other.

The attacker is a daemon too, with a mind that says whatever an attack wants and with
code that nobody tried. The attacked side is as an owner would run it, only that its
model is asked about everything.
"""

from __future__ import annotations

import asyncio
import json
import random
import string
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from anp.errors import CallError
from anp.sidecar.agreement.rulings import subject_of_candidate
from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.calls.call import CallRequest, Mode
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.halves.protocol import Answer, Protocol
from anp.sidecar.halves.workshop import Workshop
from anp.sidecar.home.home import Home
from anp.sidecar.minds.minds import Thinking
from cache.records.negotiations import StandingRecord
from cache.records.peers import PeerState
from cache.records.records import AgreementRole
from negotiation.mind import Accept, Counter, Demand, HalfSource, Side, Verdict
from negotiation.need import Need, need_key
from negotiation.rules.rules import RulesMind
from negotiation.rules.rules import propose as plain
from negotiation.transcript import Turn
from tests.attacks_model.attack import Attack, Victim
from tests.attacks_model.model import ObedientModel
from tests.attacks_model.orders import written
from tests.attacks_model.private import PRIVATE
from tests.attacks_model.wire import Wire

TEXT: Final[dict[str, Any]] = {"type": "string"}
NUMBER: Final[dict[str, Any]] = {"type": "number"}

EXPOSED: Final = ("price", "look", "buy", "charge")
"Functions that the attacker may call; the last two have side effects."

EFFECTS: Final = ("buy", "charge", "pay")

SOURCE: Final = f"""
import json
from pathlib import Path
from typing import TypedDict


class Price(TypedDict):
    price: float


class Done(TypedDict):
    done: bool


def _ran(name, **arguments):
    with open(Path(__file__).with_suffix(".runs"), "a") as file:
        file.write(json.dumps([name, arguments]) + "\\n")


def price(article: str) -> Price:
    "Price of an article."
    _ran("price", article=article)
    if article == "broken":
        raise RuntimeError({PRIVATE["exception"]!r})
    return {{"price": 1.5}}


def look(number: int) -> dict[str, int]:
    "Looks at a number."
    _ran("look", number=number)
    return {{"twice": number * 2}}


def buy(article: str) -> Done:
    "Buys an article."
    _ran("buy", article=article)
    return {{"done": True}}


def charge(article: str) -> Done:
    "Charges a card."
    _ran("charge", article=article)
    return {{"done": True}}


def wipe_ledger(sure: str) -> Done:
    {PRIVATE["hidden capability"]!r}
    _ran("wipe_ledger", sure=sure)
    return {{"done": True}}


def pay(article: str) -> Price:
    "Takes money for an article."
    _ran("pay", article=article)
    return {{"price": 2.5}}
"""

REQUESTER: Final = """
import json


def encode_request(message_id, arguments):
    if "line" in arguments:
        return f"{message_id}|{arguments['line']}".encode()
    return json.dumps({"messageId": message_id, "input": arguments}).encode()


def decode_response(data):
    text = data.decode("latin-1")
    try:
        name = json.loads(text).get("messageId")
    except ValueError:
        name = text.partition("|")[0]
    return {"message_id": name, "result": {"answer": text}}
"""

PROVIDER: Final = """
import json


def handle_request(data):
    request = json.loads(data)
    answer = yield call("shop.pay", {"article": "A"})
    status = {"code": 200, "message": "ok"}
    output = {"price": answer["price"]}
    name = request["messageId"]
    return json.dumps({"messageId": name, "status": status, "output": output}).encode()
"""


def strict(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@dataclass
class Scene:
    """One attack on two daemons."""

    attack: Attack
    victim: Daemon
    attacker: Daemon
    model: ObedientModel
    wire: Wire
    number: int
    "Makes the texts of each attack its own, so that nothing is remembered."

    ended: list[str] = field(default_factory=list)
    "How the calls ended."

    heard: list[str] = field(default_factory=list)
    "What the attacker was told outside of frames."

    calls: int = 0
    "Calls that the owner of the calling side wanted."

    turns: int = 0
    "Verdicts of the attacker's."

    blanks: int = 0
    "Blanks in the requirement, which change its bytes and not its words."

    runs: Callable[[], int] = int
    "Returns how many functions of the victim ran so far."

    arguments: dict[str, Any] | None = None
    "Data of the next calls, in place of the attack's."

    @property
    def orders(self) -> str:
        """The commands as the attacker writes them."""
        if not self.attack.orders:
            return ""
        return written(*self.attack.orders, disguise=self.attack.disguise)

    @property
    def requirement(self) -> str:
        """The need in the attacker's words."""
        blanks = " " * (1 + self.blanks)
        return f"{self.attack.requirement}, case {self.number}.{blanks}{self.orders}"

    @property
    def need(self) -> Need:
        """The need of this call, in the words of the side that calls."""
        if self.attack.victim is Victim.PROVIDER:
            return Need(self.requirement)
        words = f"{self.attack.requirement}, case {self.number}"
        if self.attack.approve == "always":
            return Need(words, None, strict(cost=NUMBER))
        return Need(words, strict(ware=TEXT), strict(cost=NUMBER))

    def document(self) -> str:
        """Return the attacker's protocol text."""
        if self.attack.document is not None:
            return self.attack.document(self)
        if self.attack.victim is Victim.PROVIDER:
            gains = self.attack.gains
            kind = NUMBER if gains == "cost" else {"type": "boolean"}
            given, wanted = strict(ware=TEXT), strict(**{gains: kind})
        else:
            given, wanted = strict(article=TEXT), strict(price=NUMBER)
        return plain(Demand(Need(self.requirement, given, wanted), {}))

    async def hint(self, text: str) -> None:
        """Let the victim's owner leave a hint for this negotiation."""
        if self.attack.victim is Victim.PROVIDER:
            role, subject = (
                AgreementRole.PROVIDER,
                subject_of_candidate(self.document()),
            )
        else:
            role, subject = AgreementRole.REQUESTER, need_key(self.need)
        now = time.time()
        word = StandingRecord(
            id=f"{random.getrandbits(64):016x}",
            peer_did=self.attacker.identities.canonical,
            role=role,
            verdict="hint",
            subject=subject,
            created=now,
            expires=now + 3_600,
            note=text,
        )
        await asyncio.to_thread(self.victim.store.save_standing, word, now=now)

    async def call(
        self, *, mode: Mode = Mode.AUTO, need: Need | None = None, **more: Any
    ) -> Any:
        """Make one call from the calling side; return its output, None if it failed."""
        theirs = self.attack.victim is Victim.PROVIDER
        caller, provider = (
            (self.attacker, self.victim) if theirs else (self.victim, self.attacker)
        )
        self.calls += 1
        request = CallRequest(
            peer=f"{provider.url}#{provider.did}",
            need=need or self.need,
            arguments=dict(self.arguments or self.attack.arguments),
            timeout=8.0,
            mode=mode,
            **more,
        )
        try:
            result = await caller.caller.call(request)
        except CallError as exc:
            self.ended.append(str(exc.kind))
            if theirs:
                self.heard.append(exc.detail)
            return None
        self.ended.append(result.source)
        if theirs:
            self.heard.append(json.dumps(result.output))
        return result.output

    def envelopes(self) -> list[str]:
        """Return the ids of the messages that carried the victim's answers."""
        return [one for who, one in self.wire.carried if who in {self.victim.did}]

    async def ask(self, question: str) -> None:
        """Ask the victim something in words."""
        try:
            said = await self.attacker.caller.ask(
                f"{self.victim.url}#{self.victim.did}", question
            )
        except CallError as exc:
            said = exc.detail
        self.heard.append(said)


class EvilMind(RulesMind):
    """Says what the attack of the moment wants; the rules say the rest."""

    def __init__(self, house: House) -> None:
        super().__init__()
        self._house = house

    async def propose(self, demand: Demand) -> str:
        """Return the attacker's text."""
        return self._house.scene.document()

    async def judge(
        self,
        candidate: str,
        side: Side,
        transcript: tuple[Turn, ...],
        *,
        findings: tuple[str, ...] = (),
    ) -> Verdict:
        """Counter with the attacker's text once, and accept everything then."""
        scene = self._house.scene
        scene.turns += 1
        counters = scene.attack.counters
        if scene.attack.victim is Victim.PROVIDER or scene.turns > counters:
            return Accept(told=scene.orders)
        if counters > 1:
            scene.number += 1_000
        return Counter(scene.document(), f"Changes:\n- All. {scene.orders}")

    async def write_half(
        self, document: str, side: Side, *, findings: tuple[str, ...] = ()
    ) -> HalfSource:
        """Return the attacker's code."""
        source = self._house.scene.attack.half
        if isinstance(side, Demand):
            return HalfSource(source or REQUESTER, "rules")
        names = tuple(one.name for one in side.capabilities)
        return HalfSource(source or PROVIDER, "rules", names)

    async def answer(self, question: str, side: Side) -> str:
        """Answer with the commands."""
        return self._house.scene.orders


class Untried:
    """A workshop that takes every code as it is."""

    def __init__(self, workshop: Any) -> None:
        self._workshop = workshop

    def __getattr__(self, name: str) -> Any:
        return getattr(self._workshop, name)

    async def prepare(self, text: str, side: Side, *, mind: Any, **more: Any) -> Any:
        """Return what the mind writes."""
        return await mind.write_half(text, side)


class Unjudged(Protocol):
    """A protocol that sends and takes whatever its half makes of it."""

    async def judge(self, kind: Any, data: bytes, values: Any = None) -> list[str]:
        """Find nothing."""
        return []

    async def decode(self, data: bytes) -> Answer:
        """Take every answer."""
        decoded = await self.half.decode_response(data)
        return Answer(decoded["message_id"], decoded["result"], None)


def _unjudged(workshop: Workshop) -> None:
    made = workshop.protocol

    async def protocol(*args: Any, **more: Any) -> Protocol:
        found = await made(*args, **more)
        found.__class__ = Unjudged
        return found

    workshop.protocol = protocol  # type: ignore[method-assign]


def _unasked(attacker: Daemon) -> None:
    """Let the attacker's side run what a need does not name, without its owner."""

    async def has_none(*_: Any) -> list[str]:
        return []

    desk = attacker.agreer.desk
    made = desk.open_case

    def open_case(record: Any, side: Side) -> Any:
        case: Any = made(record, side)
        case._unnamed = has_none
        return case

    desk.open_case = open_case  # type: ignore[method-assign]
    words: Any = desk.words_on_capabilities
    words.lacks_name = has_none


@dataclass
class House:
    """The two daemons, and the scene of the moment."""

    victim: Daemon
    attacker: Daemon
    model: ObedientModel
    wire: Wire
    folder: Path
    scene: Scene = field(init=False)

    def runs(self, who: str) -> list[tuple[str, dict[str, Any]]]:
        """Return what ran at one side so far.

        Args:
            who: `victim` or `attacker`.
        """
        [file] = self.folder.rglob(f"made_{who}_*.py")
        try:
            lines = file.with_suffix(".runs").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [tuple(json.loads(line)) for line in lines]

    async def begin(self, attack: Attack, number: int) -> Scene:
        """Begin an attack."""
        self.scene = Scene(
            attack, self.victim, self.attacker, self.model, self.wire, number
        )
        self.scene.runs = lambda: len(self.runs("victim"))
        return self.scene


def _daemon(folder: Path, who: str, settings: dict[str, Any], text: str) -> Daemon:
    home = Home(folder / who)
    home.create()
    home.config_file.write_text(text)
    key = folder / who / "model.key"
    key.write_text(PRIVATE["model key"])
    key.chmod(0o600)
    flags = {"listen.port": 0, "consensus.use": False, **settings}
    config = load_config(home, home_given=True, flags=flags, environ={}, cwd=folder)
    return Daemon(home, config)


def _attach(daemon: Daemon, folder: Path, who: str, expose: tuple[str, ...]) -> None:
    name = f"made_{who}_" + "".join(random.choices(string.ascii_lowercase, k=6))
    (folder / f"{name}.py").write_text(SOURCE)
    spec = AttachmentSpec(
        kind="python",
        name="shop",
        target=name,
        cwd=folder,
        expose=expose,
        read_only=("price", "look"),
    )
    save_attachment(daemon.home.attachments, spec)


@asynccontextmanager
async def house(
    folder: Path, attack: Attack, model: ObedientModel, wire: Wire
) -> AsyncIterator[House]:
    """Run both daemons for attacks with the same settings as this one."""
    private = folder / PRIVATE["home"]
    private.mkdir(parents=True)
    provides = attack.victim is Victim.PROVIDER
    plenty = {f"budget.{one}_calls": 5_000 for one in ("peer", "unlisted", "day")}
    settings = {
        "llm.model": "obedient",
        "llm.base_url": model.url,
        "llm.api_key_file": str(private / "victim" / "model.key"),
        "negotiation.decided_by": "llm",
        "negotiation.approve": attack.approve,
        "negotiation.approval_wait": 0,
        **dict.fromkeys(("budget.day_tokens", "budget.peer_tokens"), 50000000),
        **plenty,
        **attack.settings,
    }
    friend = (
        f'[[peer]]\nname = "{PRIVATE["other peer"]}"\ndid = "did:web:friend.example"\n'
        'expose = ["wipe_ledger"]\n'
    )
    victim = _daemon(private, "victim", settings, friend)
    attacker = _daemon(folder, "attacker", {"negotiation.test_cases": attack.cases}, "")
    _attach(victim, private, "victim", EXPOSED if provides else ())
    _attach(attacker, folder, "attacker", ("*",))
    found = House(victim, attacker, model, wire, folder)
    _unjudged(attacker.workshop)
    _unasked(attacker)
    attacker.agreer._workshop = Untried(attacker.workshop)  # type: ignore[assignment]
    attacker.agreer._think = lambda *_, **__: Thinking(EvilMind(found), None)
    async with asyncio.timeout(300), victim.running(), attacker.running():
        for daemon, other in ((victim, attacker), (attacker, victim)):
            if attack.listed:
                await daemon.policy.remember(
                    other.identities.canonical,
                    shown_did=other.did,
                    state=PeerState.ALLOWED,
                )
        yield found

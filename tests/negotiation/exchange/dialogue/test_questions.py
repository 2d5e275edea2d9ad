"""Questions in words: after an agreement, and while one is sought."""

from __future__ import annotations

import json
from typing import Any

import pytest

from negotiation.errors import FailureKind, MisuseError
from negotiation.exchange.dialogue.machine import Dialogue
from negotiation.exchange.dialogue.questions import BUSY_ANSWER, NO_ANSWER
from negotiation.exchange.events import (
    DialogueBroken,
    Ignored,
    NeedSpokenAnswer,
    NegotiationAgreed,
    NegotiationFailed,
    QuestionAnswered,
    QuestionUnanswered,
)
from negotiation.exchange.limits import NegotiationLimits
from negotiation.exchange.machine import Machine
from negotiation.messages import MAX_TEXT_SIZE
from negotiation.mind import Accept
from negotiation.need import Role
from tests.clauses import clause
from tests.negotiation.exchange.dialogue.talk import (
    ALL,
    GENERATED,
    asked,
    dialogue,
    events,
    sent,
    written,
)

ID = "AbCdEfGh01234567"
OTHER = "zzzzzzzzzzzzzzzz"


def asking(**limits: Any) -> Dialogue:
    machine = dialogue(**limits)
    machine.ask("which unit?", ID, now=0.0)
    sent(machine)
    return machine


@clause("ANP-64", "ANP-66", "ANP-67", "ANP-68", "ANP-69")
def test_a_question_and_its_answer_share_their_id() -> None:
    machine, peer = dialogue(), dialogue()
    machine.ask("which unit?", ID, now=0.0)
    (question,) = machine.messages_to_send()
    assert json.loads(question) == {
        "action": "naturalLanguageNegotiation",
        "type": "REQUEST",
        "messageId": ID,
        "message": "which unit?",
    }
    peer.receive_message(question, now=0.0)
    assert events(peer) == [NeedSpokenAnswer(ID, "which unit?")]
    peer.answer_ready(ID, "metres", now=0.0)
    (answer,) = peer.messages_to_send()
    assert json.loads(answer)["type"] == "RESPONSE"
    machine.receive_message(answer, now=0.0)
    assert events(machine) == [QuestionAnswered(ID, "metres")]
    assert machine.get_timer() is peer.get_timer() is None


@clause("ANP-68", "ANP-Q13")
@pytest.mark.parametrize("name", ["", "a" * 15, "a" * 17, "a" * 15 + "-", "ä" * 16])
def test_our_ids_have_sixteen_letters_and_digits(name: str) -> None:
    with pytest.raises(MisuseError):
        dialogue().ask("?", name, now=0.0)


@clause("ANP-Q13")
def test_an_id_of_the_peer_is_any_sixteen_characters() -> None:
    machine = dialogue()
    machine.receive_message(asked("REQUEST", "漢" * 16, "?"), now=0.0)
    assert events(machine) == [NeedSpokenAnswer("漢" * 16, "?")]
    machine.receive_message(asked("REQUEST", "a" * 15, "?"), now=0.0)
    assert [type(one) for one in events(machine)] == [Ignored]


@clause("ANP-Q13")
def test_an_answer_to_no_open_question_is_dropped() -> None:
    machine = asking()
    machine.receive_message(asked("RESPONSE", OTHER, "metres"), now=0.0)
    assert events(machine) == [Ignored("an answer to no open question")]
    machine.receive_message(asked("RESPONSE", ID, "metres"), now=0.0)
    machine.receive_message(asked("RESPONSE", ID, "feet"), now=0.0)
    assert events(machine) == [
        QuestionAnswered(ID, "metres"),
        Ignored("an answer to no open question"),
    ]


@clause("ANP-Q13")
def test_the_id_of_an_open_question_twice_is_a_protocol_error() -> None:
    machine = dialogue()
    machine.receive_message(asked("REQUEST", ID, "?"), now=0.0)
    events(machine)
    machine.receive_message(asked("REQUEST", ID, "??"), now=0.0)
    (broken,) = events(machine)
    assert isinstance(broken, DialogueBroken)
    assert (broken.by_peer, machine.ended) == (True, True)


def test_an_id_may_come_again_once_it_is_answered() -> None:
    machine = dialogue()
    for _ in range(2):
        machine.receive_message(asked("REQUEST", ID, "?"), now=0.0)
        machine.answer_ready(ID, "!", now=0.0)
        assert events(machine) == [NeedSpokenAnswer(ID, "?")]


def test_a_silent_peer_leaves_the_question_unanswered() -> None:
    machine = asking(question_timeout=30.0)
    assert machine.get_timer() == 30.0
    machine.handle_timer(now=30.0)
    assert events(machine) == [QuestionUnanswered(ID, "no answer in 30 s")]
    assert not machine.ended


@pytest.mark.parametrize("end", ["timer", "none", "blank"])
def test_a_peer_hears_that_there_is_no_answer(end: str) -> None:
    machine = dialogue(answer_timeout=5.0)
    machine.receive_message(asked("REQUEST", ID, "?"), now=0.0)
    match end:
        case "timer":
            machine.handle_timer(now=5.0)
        case "none":
            machine.answer_ready(ID, "", now=1.0)
        case _:
            machine.answer_ready(ID, " ", now=1.0)
    assert [one["message"] for one in sent(machine)] == [NO_ANSWER]
    machine.answer_ready(ID, "late", now=6.0)
    assert sent(machine) == []


def test_questions_are_limited_in_each_direction() -> None:
    machine = asking(max_questions=1)
    machine.ask("and?", OTHER, now=0.0)
    assert events(machine) == [
        QuestionUnanswered(OTHER, "1 questions are open already")
    ]
    machine.receive_message(asked("REQUEST", ID, "?"), now=0.0)
    machine.receive_message(asked("REQUEST", OTHER, "?"), now=0.0)
    assert [one["message"] for one in sent(machine)] == [BUSY_ANSWER]
    assert [type(one) for one in events(machine)] == [NeedSpokenAnswer, Ignored]


@clause("ANP-81", "ANP-Q17")
def test_without_the_capability_nothing_is_asked_or_answered() -> None:
    machine = dialogue(common=frozenset())
    machine.ask("?", ID, now=0.0)
    assert [type(one) for one in events(machine)] == [QuestionUnanswered]
    machine.receive_message(asked("REQUEST", OTHER, "?"), now=0.0)
    assert [type(one) for one in events(machine)] == [Ignored]
    assert sent(machine) == []


@clause("ANP-Q30")
def test_long_words_are_cut() -> None:
    machine = dialogue()
    machine.ask("漢" * 100_000, ID, now=0.0)
    assert len(sent(machine)[0]["message"].encode()) <= MAX_TEXT_SIZE
    machine.receive_message(asked("RESPONSE", ID, "x" * (MAX_TEXT_SIZE + 1)), now=0.0)
    assert [type(one) for one in events(machine)] == [Ignored]


def test_a_lost_link_leaves_questions_unanswered() -> None:
    machine = asking()
    machine.link_lost(now=1.0)
    assert events(machine) == [QuestionUnanswered(ID, "the connection was lost")]


# While negotiating.


def negotiating(common: frozenset[str] = ALL, **limits: Any) -> Machine:
    limits_ = NegotiationLimits(**limits)
    machine = Machine(Role.PROVIDER, limits_, now=0.0, common=common)
    content = {
        "action": "protocolNegotiation",
        "sequenceId": 0,
        "candidateProtocols": "# Need\n",
        "status": "negotiating",
    }
    machine.receive_message(written(content), now=0.0)
    machine.next_event()
    return machine


def told(machine: Machine) -> list[object]:
    return list(iter(machine.next_event, None))


@clause("ANP-64", "ANP-66")
def test_a_question_may_be_asked_while_negotiating() -> None:
    machine = negotiating()
    machine.ask("which unit?", ID, now=0.0)
    assert len(machine.messages_to_send()) == 1
    machine.receive_message(asked("RESPONSE", ID, "metres"), now=0.0)
    assert told(machine) == [QuestionAnswered(ID, "metres")]
    machine.receive_message(asked("REQUEST", OTHER, "and you?"), now=0.0)
    assert told(machine) == [NeedSpokenAnswer(OTHER, "and you?")]
    machine.answer_ready(OTHER, "feet", now=0.0)
    (answer,) = machine.messages_to_send()
    assert json.loads(answer)["message"] == "feet"


def test_a_question_that_nobody_answers_does_not_hold_a_negotiation_up() -> None:
    machine = negotiating(answer_timeout=100.0)
    machine.receive_message(asked("REQUEST", ID, "?"), now=0.0)
    due = machine.get_timer()
    assert due is not None
    machine.handle_timer(now=due)
    (answer,) = machine.messages_to_send()
    assert json.loads(answer)["message"] == NO_ANSWER
    assert told(machine) == [NeedSpokenAnswer(ID, "?")]
    machine.module_ready(now=due)


@clause("ANP-Q13")
def test_a_repeated_id_is_a_protocol_error_while_negotiating() -> None:
    machine = negotiating()
    for _ in range(2):
        machine.receive_message(asked("REQUEST", ID, "?"), now=0.0)
    last = told(machine)[-1]
    assert isinstance(last, NegotiationFailed)
    assert last.kind is FailureKind.PROTOCOL_ERROR


def test_an_open_question_ends_with_the_negotiation() -> None:
    machine = negotiating()
    machine.ask("which unit?", ID, now=0.0)
    machine.cancel("enough", now=0.0)
    unanswered, failed = told(machine)
    assert isinstance(unanswered, QuestionUnanswered)
    assert isinstance(failed, NegotiationFailed)
    machine.ask("?", OTHER, now=0.0)
    machine.answer_ready(OTHER, "!", now=0.0)
    assert told(machine) == []


def test_the_agreement_is_the_last_event_in_spite_of_a_question() -> None:
    machine = negotiating()
    machine.ask("which unit?", ID, now=0.0)
    machine.module_ready(now=0.0)
    machine.verdict_ready(Accept(), now=0.0)
    machine.receive_message(GENERATED, now=0.0)
    assert [type(one) for one in told(machine)] == [
        QuestionUnanswered,
        NegotiationAgreed,
    ]


@clause("ANP-Q17")
def test_questions_are_dropped_when_they_are_not_common() -> None:
    machine = negotiating(frozenset())
    machine.receive_message(asked("REQUEST", ID, "?"), now=0.0)
    assert told(machine) == [Ignored("naturalLanguageNegotiation is not common")]
    machine.ask("?", ID, now=0.0)
    assert [type(one) for one in told(machine)] == [QuestionUnanswered]
    assert machine.messages_to_send() == []

"""The limits of `make house`, each with its reason.

HOUSE.md's section Measures says where they come from.
"""

from __future__ import annotations

from typing import Final

MAX_FLAT_FILES: Final = 15
"Python files flat in one folder; more than that cannot be taken in at one look."

MAX_ROOMS_WITHOUT_ORDER: Final = 0
"Rooms without an import order; where nothing holds the order, it is lost unseen."

MAX_CIRCLES: Final = 0
"Circles of imports; the modules of a circle can only be understood all at once."

WANTED_CALL_FILES: Final = 35
"Files that a warm call should enter in both daemons; a newcomer can read as many."

MAX_CALL_FILES: Final = 76
"""Files that it may enter now; 82 was the start, and 48 were reached once.

Remembered ways, plans in the daemon, binary frames, the access log and requests that
are read without the HTTP library came since, each in files of its own.
"""

WANTED_CALL_FILES_BEFORE_SEND: Final = 25
"Files that a warm call should enter before its bytes leave."

MAX_CALL_FILES_BEFORE_SEND: Final = 46
"Files that it may enter before that now; 66 was the start, and 35 were reached once."

WANTED_LINES: Final = 74_000
"Lines of product code that should do, with the same behaviour."

MAX_LINES: Final = 157_900
"""Lines that there may be now; 77,100 was the start, without the lists of rooms.

Fair shares, the gate, the enforcer, scopes and trouble with the store brought 7,800,
the choice by name and published documents 1,300. Conversations brought 21,600: their
model and log, GB/Z 185.6, the service of tasks with its commands and its MCP tools, the
access log, and the deadlines and signs of work of long calls. 17,700 came with what
conversations lacked (files, the inbox, updates of negotiated protocols, the envelope
1.1, notification), plans with choices and loops, values in words, A2A in and out with
its codec, tokens, cards and pushes, finding peers, and A2A over channels. 19,500 came
with many agents: groups with their hub, sealed groups, subscriptions, tasks in parts,
their faces, binary frames, plans that run in the daemon, and the first minute. 4,200
came with hubs over a fleet, groups of the settings, tasks for groups, requests that are
read without the HTTP library, extras, and the history that the dashboard draws. 2,700
came with speed: pipes of MCP servers, long texts in pieces, starts side by side, and
connections that are freed when they end.
"""

MAX_COMPLEXITY: Final = 10
"Branches after which a function counts as complex; the default of mccabe."

MAX_COMPLEX_FUNCTIONS: Final = 20
"Complex functions; there were 20 when the limit was set, and no more may come."

MAX_NAMES_TWICE_IN_PACKAGE: Final = 0
"Public class names with two meanings in one package; readers take the wrong one."

MAX_RIDDLES: Final = 5
"Documentation that begins with a question word; some are good English, most are not."

MAX_GERUND_MODULES: Final = 0
"Modules named by an activity; a module is a thing, so its name is a noun."

MAX_QUICK_CPU_SECONDS: Final = 120.0
"CPU seconds of `make quick`; a longer inner loop is not run after every change."

GERUND_NOUNS: Final = frozenset(
    {
        "encoding",  # The result of encoding: UTF-8 is an encoding.
        "listing",  # A list that is published; a directory listing.
        "mapping",  # A set of pairs; the standard library's Mapping.
        "padding",  # The bytes that fill a block.
        "pricing",  # The prices of something.
        "standing",  # The position that somebody has; a peer's standing.
        "string",  # No verb at all.
        "timing",  # A set of durations.
        "tracing",  # The field's name for recording spans, as in OpenTelemetry.
        "wiring",  # The wires of a house; the parts put together.
        "wording",  # The words of a text.
    }
)
"Last words of module names that end in `ing` and are nouns of their own."

"""The limits of `make house`: each is the figure that landed last.

A limit falls when its figure falls. It is raised only by the lines that an issue
states for what it adds.
"""

from __future__ import annotations

from typing import Final

MAX_FLAT_FILES: Final = 15
"Python files flat in one folder."

MAX_ROOMS_WITHOUT_ORDER: Final = 0
"Rooms without an import order."

MAX_CIRCLES: Final = 0
"Circles of imports."

MAX_CALL_FILES: Final = 76
"Files that a warm call enters in both daemons."

MAX_CALL_FILES_BEFORE_SEND: Final = 46
"Files that a warm call enters before its bytes leave."

MAX_LINES: Final = 157_783
"Lines of product code."

MIN_DOCUMENTATION: Final = 0.2254
"Lines of documentation and comments for each line of code."

MAX_FILE_LINES: Final = 1_395
"Lines of the longest file."

MAX_SMALL_FILES: Final = 184
"Files of under 100 lines, with the `__init__` of rooms."

MAX_SINGLE_HEIRS: Final = 13
"Base classes in a file of their own that one class of another file extends."

MAX_REPEATED_FILE_NAMES: Final = 106
"File names that stand in more than one folder."

MAX_COMPLEXITY: Final = 10
"Branches after which a function counts as complex; the default of mccabe."

MAX_COMPLEX_FUNCTIONS: Final = 20
"Complex functions."

MAX_NAMES_TWICE: Final = 27
"Public class names of two modules."

MAX_NAMES_TWICE_IN_PACKAGE: Final = 0
"Public class names of two modules in one package."

MAX_RIDDLES: Final = 5
"Texts of documentation that begin with a question word."

MAX_GERUND_MODULES: Final = 0
"Modules named by an activity; a module is a thing, so its name is a noun."

MAX_QUICK_CPU_SECONDS: Final = 120.0
"CPU seconds of `make quick`."

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

"""The facades: the modules that a half may import, with their allowed members.

No member is a module, a container that could be written to, or a function that reads
an attribute by a name given at run time. Such members of the standard library are left
out or replaced by forms of our own.
"""

from __future__ import annotations

import base64
import binascii
import bisect
import calendar
import collections
import collections.abc
import contextlib
import csv
import datetime
import decimal
import enum
import fractions
import hashlib
import heapq
import hmac
import html
import io
import ipaddress
import itertools
import math
import numbers
import operator
import re
import secrets
import statistics
import string
import struct
import textwrap
import time
import types
import typing
import unicodedata
import urllib.parse
import uuid
import zlib
from types import ModuleType
from typing import Any

from sandbox.language.facades import objects
from sandbox.language.facades.facade import Facade, facade_of
from sandbox.language.facades.log import LOGGING_MEMBERS, CappedLog
from sandbox.language.facades.objects import TREE_MEMBERS, reset_namespaces
from sandbox.language.names import OWN_MODULE
from sandbox.language.runtime.enums import ENUMS
from sandbox.language.runtime.texts import TextWrapper


def _of(module: ModuleType, names: str) -> dict[str, Any]:
    """Return the named members, as far as this version of Python has them."""
    return {
        name: getattr(module, name) for name in names.split() if hasattr(module, name)
    }


def _public(module: ModuleType, *without: str) -> dict[str, Any]:
    names = getattr(module, "__all__", None) or dir(module)
    return {
        name: getattr(module, name)
        for name in names
        if not name.startswith("_")
        and name not in without
        and not isinstance(getattr(module, name), ModuleType)
    }


def _named_tuple(
    typename: str, field_names: Any, *, rename: bool = False, defaults: Any = None
) -> Any:
    if type(field_names) is not str:
        field_names = [str.__getitem__(name, slice(None)) for name in field_names]
    kind: Any = collections.namedtuple
    return kind(
        typename, field_names, rename=rename, defaults=defaults, module=OWN_MODULE
    )


_TYPING = (
    "Any Optional Union List Dict Set FrozenSet Tuple Type Callable Iterable Iterator "
    "Generator Sequence MutableSequence Mapping MutableMapping Collection Container "
    "Hashable Sized Reversible Literal Final ClassVar Generic Protocol TypeVar "
    "NamedTuple NewType TypedDict NoReturn Never Self Annotated Required NotRequired "
    "Deque DefaultDict OrderedDict Counter ChainMap AnyStr Text SupportsInt "
    "SupportsFloat "
    "SupportsIndex SupportsBytes SupportsAbs SupportsRound AbstractSet ContextManager "
    "LiteralString TypeAlias TypeGuard TypeIs Concatenate ParamSpec Unpack "
    "TypeVarTuple KeysView ValuesView ItemsView MappingView Pattern Match BinaryIO "
    "TextIO "
    "IO Awaitable Coroutine AsyncIterator AsyncIterable AsyncGenerator ReadOnly"
)

_MEMBERS: dict[str, dict[str, Any]] = {
    "abc": objects.ABC,
    "base64": _public(base64, "encode", "decode", "main"),
    "binascii": _public(binascii),
    "bisect": _of(bisect, "bisect bisect_left bisect_right insort insort_left")
    | _of(bisect, "insort_right"),
    "calendar": {
        **_of(calendar, "Calendar TextCalendar isleap leapdays monthrange weekday"),
        **_of(calendar, "timegm monthcalendar IllegalMonthError IllegalWeekdayError"),
        **_of(calendar, "MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY SUNDAY"),
        **{
            name: tuple(getattr(calendar, name))
            for name in ("day_name", "day_abbr", "month_name", "month_abbr")
        },
    },
    "collections": _of(collections, "ChainMap Counter OrderedDict UserDict UserList")
    | _of(collections, "defaultdict deque")
    | {"namedtuple": _named_tuple},
    "collections.abc": _public(collections.abc),
    "contextlib": _of(contextlib, "closing contextmanager nullcontext suppress"),
    "copy": objects.COPY,
    "csv": _of(csv, "reader writer DictReader DictWriter Error Dialect excel")
    | _of(csv, "excel_tab unix_dialect Sniffer QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE")
    | _of(csv, "QUOTE_NONNUMERIC QUOTE_STRINGS QUOTE_NOTNULL"),
    "dataclasses": objects.DATACLASSES,
    "datetime": _public(datetime, "datetime_CAPI"),
    "decimal": _public(decimal, "DefaultContext", "BasicContext", "ExtendedContext"),
    "enum": ENUMS
    | _of(enum, "auto unique verify")
    | _of(enum, "member nonmember property CONTINUOUS NAMED_FLAGS UNIQUE FlagBoundary")
    | _of(enum, "STRICT CONFORM EJECT KEEP"),
    "fractions": _of(fractions, "Fraction"),
    "functools": objects.FUNCTOOLS,
    "hashlib": _of(hashlib, "md5 sha1 sha224 sha256 sha384 sha512 sha3_224 sha3_256")
    | _of(hashlib, "sha3_384 sha3_512 shake_128 shake_256 blake2b blake2s new")
    | _of(hashlib, "pbkdf2_hmac scrypt")
    | {
        "algorithms_available": frozenset(hashlib.algorithms_available),
        "algorithms_guaranteed": frozenset(hashlib.algorithms_guaranteed),
    },
    "heapq": _of(heapq, "heappush heappop heapify heapreplace heappushpop merge")
    | _of(heapq, "nlargest nsmallest"),
    "hmac": _of(hmac, "new compare_digest digest HMAC"),
    "html": _of(html, "escape unescape"),
    "io": _of(io, "BytesIO StringIO SEEK_SET SEEK_CUR SEEK_END"),
    "ipaddress": _of(ipaddress, "ip_address ip_network ip_interface IPv4Address")
    | _of(ipaddress, "IPv4Network IPv4Interface IPv6Address IPv6Network")
    | _of(ipaddress, "IPv6Interface AddressValueError NetmaskValueError")
    | _of(ipaddress, "collapse_addresses summarize_address_range v4_int_to_packed")
    | _of(ipaddress, "v6_int_to_packed get_mixed_type_key"),
    "itertools": _public(itertools),
    "json": objects.JSON,
    "logging": {},
    "math": _public(math),
    "numbers": _public(numbers),
    "operator": _public(operator, "attrgetter", "methodcaller"),
    "re": _public(re, "template", "purge", "TEMPLATE", "T"),
    "secrets": _of(secrets, "choice compare_digest randbelow randbits token_bytes")
    | _of(secrets, "token_hex token_urlsafe"),
    "statistics": _public(statistics),
    "string": _public(string, "Formatter", "Template"),
    "struct": _public(struct),
    "textwrap": _of(textwrap, "dedent fill indent shorten wrap")
    | {"TextWrapper": TextWrapper},
    "time": _of(time, "time time_ns monotonic monotonic_ns"),
    "types": _of(types, "SimpleNamespace MappingProxyType NoneType EllipsisType"),
    "typing": _of(typing, _TYPING) | objects.TYPING,
    "unicodedata": _of(unicodedata, "bidirectional category combining decimal digit")
    | _of(unicodedata, "decomposition east_asian_width is_normalized lookup mirrored")
    | _of(unicodedata, "name normalize numeric unidata_version"),
    "urllib": {},
    "urllib.parse": _of(urllib.parse, "quote quote_from_bytes quote_plus unquote")
    | _of(urllib.parse, "unquote_plus unquote_to_bytes urlencode urldefrag urljoin")
    | _of(urllib.parse, "urlparse urlsplit urlunparse urlunsplit parse_qs parse_qsl")
    | _of(urllib.parse, "ParseResult SplitResult DefragResult"),
    "uuid": _of(uuid, "UUID uuid3 uuid4 uuid5 NAMESPACE_DNS NAMESPACE_URL SafeUUID")
    | _of(uuid, "NAMESPACE_OID NAMESPACE_X500 RFC_4122"),
    "xml": {},
    "xml.etree": {},
    "xml.etree.ElementTree": TREE_MEMBERS,
    "zlib": _of(zlib, "adler32 compress compressobj crc32 decompress decompressobj")
    | _of(zlib, "error MAX_WBITS DEFLATED Z_BEST_COMPRESSION Z_BEST_SPEED")
    | _of(zlib, "Z_DEFAULT_COMPRESSION Z_DEFAULT_STRATEGY Z_FINISH Z_NO_FLUSH")
    | _of(zlib, "Z_SYNC_FLUSH Z_FULL_FLUSH DEF_MEM_LEVEL DEF_BUF_SIZE"),
}
"""Members by module (SANDBOX.md, list item 8).

Not in SANDBOX.md: abc, contextlib, numbers and types; honest code uses them, and their
members here give access to nothing else.
"""


def _facades() -> dict[str, Facade]:
    # Submodules first, so that each package's facade can hold theirs.
    made: dict[str, Facade] = {}
    for module in sorted(_MEMBERS, key=lambda name: -name.count(".")):
        below = {
            name.rpartition(".")[2]: facade
            for name, facade in made.items()
            if name.rpartition(".")[0] == module
        }
        made[module] = facade_of(module, _MEMBERS[module] | below)
    return made


FACADES = _facades()
"Facades by module name; the one of `logging` is made for each log."

MODULE_MEMBERS: dict[str, frozenset[str]] = {
    name: frozenset(dir(facade)) - frozenset(dir(Facade))
    for name, facade in FACADES.items()
} | {"logging": LOGGING_MEMBERS}
"The modules that may be imported, with the names of their members."


def _reset_decimal() -> None:
    decimal.setcontext(decimal.Context())


_RESETS = {
    "decimal": _reset_decimal,
    "xml.etree.ElementTree": reset_namespaces,
    "xml.etree": reset_namespaces,
    "xml": reset_namespaces,
}
"Functions that reset state which a module keeps beyond one call."


def import_name(log: CappedLog, module: str, member: str | None = None) -> Any:
    """Return a facade or a member of one; the names were checked at compile time."""
    reset = _RESETS.get(module)
    if reset is not None:
        reset()
    facade = log.logging if module == "logging" else FACADES[module]
    return facade if member is None else getattr(facade, member)

"""Loads in the fork server the modules that workers use and Python loads lazily.

A locked worker opens no file, so a module that is not in memory before the fork causes
an ImportError or a LookupError in honest code (SANDBOX.md, Seccomp filter). Some
modules are loaded only by a first use, which this module makes once.
"""

from __future__ import annotations

import codecs
import importlib
import time
from contextlib import suppress

MODULES = (
    # Modules that halves may import (SANDBOX.md, RestrictedPython, 8).
    *("base64", "binascii", "bisect", "calendar", "collections.abc", "copy", "csv"),
    *("dataclasses", "datetime", "decimal", "enum", "fractions", "functools"),
    *("hashlib", "heapq", "hmac", "html", "html.entities", "io", "ipaddress"),
    *("itertools", "json", "math", "operator", "random", "re", "secrets"),
    *("statistics", "string", "struct", "textwrap", "time", "typing", "unicodedata"),
    *("urllib.parse", "uuid", "xml.etree.ElementTree", "zlib"),
    # Modules that those, the interpreter and our own code import lazily.
    *("_pylong", "_strptime", "copyreg", "encodings.aliases", "encodings.idna"),
    *("encodings.punycode", "keyword", "linecache", "locale", "mmap", "pprint"),
    *("pyexpat", "stringprep", "tokenize", "traceback", "tracemalloc", "warnings"),
    *("xml.etree.ElementPath",),
)
"""Modules to load, where this version of Python has them.

zoneinfo is left out, since it reads files.
"""

ENCODINGS = (
    *("ascii", "latin_1", "utf_7", "utf_8", "utf_8_sig"),
    *("utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_32_be", "utf_32_le"),
    *("idna", "punycode", "raw_unicode_escape", "unicode_escape"),
    *("big5", "big5hkscs", "cp932", "cp949", "cp950", "euc_jp", "euc_kr", "gb18030"),
    *("gb2312", "gbk", "iso2022_jp", "shift_jis", "shift_jisx0213", "johab"),
    *("koi8_r", "koi8_u", "mac_roman", "tis_620", "hz"),
    *("cp037", "cp437", "cp500", "cp850", "cp852", "cp855", "cp858", "cp866"),
    *(f"cp125{number}" for number in range(9)),
    *("cp874", "cp1140", "hp_roman8"),
    *(f"iso8859_{number}" for number in (*range(2, 12), *range(13, 17))),
    *("base64_codec", "hex_codec", "quopri_codec", "rot_13", "zlib_codec"),
)
"Encodings that a protocol may name, and further codecs."


PLAIN_MODULES = (
    *("asyncio", "bdb", "cProfile", "code", "codeop", "concurrent.futures"),
    *("configparser", "ctypes.util", "fileinput", "ftplib", "glob", "http.client"),
    *("http.server", "importlib._abc", "importlib.util", "inspect", "logging"),
    *("logging.config", "logging.handlers", "multiprocessing", "pathlib", "pdb"),
    *("pickle", "pkgutil", "pty", "runpy", "shelve", "shutil", "smtplib", "socket"),
    *("socketserver", "sqlite3", "ssl", "subprocess", "tarfile", "tempfile"),
    *("termios", "threading", "timeit", "urllib.request", "webbrowser", "xml.sax"),
    *("multiprocessing.connection", "multiprocessing.popen_fork"),
    *("concurrent.futures.process", "concurrent.futures.thread"),
    *(
        "xml.sax.expatreader",
        "xmlrpc.client",
        "xml.etree.ElementInclude",
        "zipfile",
        "zipimport",
    ),
)
"Modules for workers without the language layer, so that only the kernel refuses."


def preload(*, plain: bool = False) -> None:
    """Load `MODULES` and `ENCODINGS`, and use once whatever loads more when used.

    Args:
        plain: Load `PLAIN_MODULES` too.
    """
    for name in (*MODULES, *(PLAIN_MODULES if plain else ())):
        # Some exist only in later versions of Python.
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    for name in ENCODINGS:
        codecs.lookup(name)
    _use_once()


def _use_once() -> None:
    # Imported here, so that the daemon does not load them with this module.
    import datetime
    import decimal
    import hashlib
    import hmac
    import random
    import secrets
    import urllib.parse
    import uuid
    from xml.etree import ElementTree

    # With the first digest OpenSSL reads its configuration and loads its providers.
    for name in sorted(hashlib.algorithms_available):
        # A build may list a name that it does not allow.
        with suppress(ValueError):
            hashlib.new(name, b"")
            hmac.new(b"key", b"", name).hexdigest()
    hashlib.pbkdf2_hmac("sha256", b"", b"salt", 1)
    datetime.datetime.strptime("2020-01-31 Mon", "%Y-%m-%d %a")
    time.strptime("2020", "%Y")
    datetime.datetime.now().astimezone().strftime("%c %Z")
    format(decimal.Decimal("1.5"), ".3f")
    random.random()
    secrets.token_bytes(1)
    uuid.uuid4()
    urllib.parse.urlsplit("http://[::1]:80/?a=b#c")
    urllib.parse.parse_qs("a=%20")
    root = ElementTree.fromstring("<a x='1'><b/></a>")
    root.findall(".//b[1]")
    ElementTree.tostring(root, "utf-8")
    "bücher.example".encode("idna").decode("idna")

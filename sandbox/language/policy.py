"""The static policy: compiles a half's source, or returns findings by line."""

from __future__ import annotations

import ast
import warnings
from types import CodeType

from sandbox.errors import Finding
from sandbox.language.audit import audit
from sandbox.language.names import FILENAME
from sandbox.language.transformer import HalfTransformer

MAX_SOURCE = 64 * 1024
"Largest source, in bytes of UTF-8 (SANDBOX.md, Layer 0)."


def compile_half(
    source: str, *, language: bool = True
) -> tuple[CodeType | None, list[Finding]]:
    """Compile a module's source; called in workers only.

    Args:
        language: False compiles the source without the language layer, for tests of
            the process only.

    Returns:
        The code and no findings, or None and findings by line.
    """
    with warnings.catch_warnings():
        # Warnings concern the half's code, and nobody would read them here.
        warnings.simplefilter("ignore")
        try:
            return _compile(source, language=language)
        except SyntaxError as exc:
            reason = f"this is no Python: {exc.msg}"
            return None, [Finding(exc.lineno, reason, _excerpt(source, exc))]
        except (RecursionError, MemoryError):
            reason = "the source is nested too deeply; use names for parts of it"
            return None, [Finding(None, reason)]
        except ValueError as exc:
            return None, [Finding(None, f"the source cannot be compiled: {exc}"[:300])]


def _compile(source: str, *, language: bool) -> tuple[CodeType | None, list[Finding]]:
    # A lone surrogate raises a ValueError (UnicodeEncodeError) here.
    size = len(source.encode("utf-8"))
    if size > MAX_SOURCE:
        return None, [
            Finding(None, f"the source has {size} bytes, at most {MAX_SOURCE}")
        ]
    if "\0" in source:
        return None, [Finding(None, "the source has a zero byte; write it as \\0")]
    if not language:
        return compile(source, FILENAME, "exec", dont_inherit=True), []
    tree = ast.parse(source, FILENAME)
    transformer = HalfTransformer(source)
    transformer.visit(tree)
    findings = transformer.findings()
    if findings:
        return None, findings
    code = compile(tree, FILENAME, "exec", dont_inherit=True)
    findings = audit(code)
    return (None, findings) if findings else (code, [])


def _excerpt(source: str, error: SyntaxError) -> str:
    lines = source.splitlines()
    number = error.lineno or 0
    return lines[number - 1].strip()[:120] if 0 < number <= len(lines) else ""

"""The static policy: RestrictedPython's transformer, adapted.

Iteration, unpacking and items are left to the interpreter: facades hold no containers,
so only attributes need guards (SANDBOX.md, RestrictedPython: what must be extended).
Statements that RestrictedPython would rewrite for that purpose, such as chained
assignments, so keep their meaning.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sandbox.errors import Finding
from sandbox.language import names
from sandbox.language.advice import ATTRIBUTES, BUILTINS
from sandbox.language.statements import StatementRules
from sandbox.language.syntax import (
    ClassScope,
    bound_names,
    build_call,
    build_constant,
    place,
)

_Node = TypeVar("_Node", bound=ast.AST)

MAX_FINDINGS = 20
"Findings that are reported for one source."

MAX_EXCERPT = 120
"Longest excerpt of a line, in characters."

_CLASS_KEYWORDS = {"total", "boundary"}
"Keywords that the class statements of TypedDict and Flag may have."

_LEAVES = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
"Nodes without children; every operator is allowed."


class HalfTransformer(StatementRules):
    """Rewrites a parsed half so that guards run, and collects findings."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self._lines = source.splitlines()
        self._findings: set[Finding] = set()
        self._owner: str | None = None
        self._bound: set[str] = set()
        self._modules: dict[str, str] = {}
        self._builtins: list[ast.Name] = []
        self._members: list[tuple[str, ast.Attribute]] = []
        self._captures: list[tuple[str, ast.MatchClass]] = []

    def findings(self) -> list[Finding]:
        """Return the findings, by line, after the visit."""
        for node in self._builtins:
            if node.id not in self._bound:
                instead = BUILTINS[node.id]
                self.error(node, f"{node.id} is not available; {instead}")
        for name, attribute in self._members:
            if name not in self._bound:
                self.check_member(name, attribute)
        for name, pattern in self._captures:
            if name in self._bound:
                self.refuse_pattern(pattern)
        by_line = sorted(self._findings, key=lambda f: (f.line or 0, f.reason))
        return by_line[:MAX_FINDINGS]

    def error(self, node: ast.AST, info: str) -> None:
        """Record a finding."""
        line = getattr(node, "lineno", None)
        excerpt = ""
        if line is not None and line <= len(self._lines):
            excerpt = self._lines[line - 1].strip()[:MAX_EXCERPT]
        self._findings.add(Finding(line, info, excerpt))

    def not_allowed(self, node: ast.AST) -> None:
        """Record a finding about a kind of statement."""
        self.error(node, f"{type(node).__name__} is not available in a half")

    def node_contents_visit(self, node: _Node) -> _Node:
        """Visit the children of a node; quicker than the base class."""
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                kept: list[Any] = []
                for item in value:
                    if not isinstance(item, ast.AST) or isinstance(item, _LEAVES):
                        kept.append(item)
                        continue
                    result = self.visit(item)
                    if isinstance(result, list):
                        kept.extend(result)
                    elif result is not None:
                        kept.append(result)
                value[:] = kept
            elif isinstance(value, ast.AST) and not isinstance(value, _LEAVES):
                setattr(node, field, self.visit(value))
        return node

    # Left to the interpreter: no facade has items, and the grammar permits only names
    # as targets of `:=`.
    guard_iter = visit_NamedExpr = visit_Subscript = node_contents_visit
    visit_Try = visit_With = node_contents_visit

    # Names

    def bind(self, node: ast.AST, name: str) -> str:
        """Check a name that the source binds; return its name in the compiled code."""
        self._bound.add(name)
        if not name.startswith("_"):
            if names.is_reserved(name):
                self.error(node, f"{name}: names with this beginning are reserved")
            elif self.scope is not None and name in names.BLOCKED_ATTRIBUTES:
                self._refuse_attribute(node, name)
            return name
        if name in {"_", "__"}:
            return name
        if self.scope is not None:
            if names.is_reserved(name):
                if name not in names.CLASS_NAMES:
                    self._refuse_attribute(node, name)
                return name
            return self.scope.own(name)
        if names.is_reserved(name) and not (
            name in names.MODULE_NAMES and self._owner is None
        ):
            self.error(node, f"{name} may not be bound; use a name without underscores")
        return name

    def check_name(
        self, node: ast.AST, name: str | None, allow_magic_methods: bool = False
    ) -> None:
        """Check a name of the kinds that the base class handles."""
        if name is not None:
            self.bind(node, name)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Check a variable; in a class body its private names are attributes."""
        name = node.id
        if not isinstance(node.ctx, ast.Load):
            node.id = self.bind(node, name)
        elif name in BUILTINS:
            self._builtins.append(node)
        elif name.startswith(("_", names.PREFIX)):
            if self.scope is not None and name in self.scope.private:
                node.id = self.scope.own(name)
            elif self.scope is not None and name in names.CLASS_NAMES:
                # Reading a special method, as in `__rmul__ = __mul__`, is allowed.
                pass
            elif names.is_reserved(name) and name not in {
                "__name__",
                "__debug__",
                *names.MODULE_NAMES,
            }:
                self._refuse_attribute(node, name)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """Allow; a constant has no children."""
        return node

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> ast.AST:
        """Allow: the globals of a half last for one call only."""
        for name in node.names:
            if names.is_reserved(name):
                self.error(node, f"{name} may not be bound")
        return node

    visit_Nonlocal = visit_Global

    # Attributes

    def _refuse_attribute(self, node: ast.AST, name: str) -> None:
        instead = ATTRIBUTES.get(name)
        reason = f"{name} is not available"
        if instead is None and name.startswith("_"):
            instead = "names with underscores on both sides are the language's own"
        self.error(node, f"{reason}; {instead}" if instead else reason)

    def _attribute(self, node: ast.Attribute) -> str:
        """Check the name of an attribute; return its name in the compiled code."""
        name = node.attr
        if name.startswith("_"):
            if name == "_":
                return name
            if not names.is_reserved(name):
                return names.private_attribute(name, self._owner)
            reading = isinstance(node.ctx, ast.Load) and name in names.READABLE_DUNDERS
            if not reading and name not in {"_value_", "_name_"}:
                self._refuse_attribute(node, name)
        elif name in names.BLOCKED_ATTRIBUTES:
            self._refuse_attribute(node, name)
        elif names.is_reserved(name):
            self.error(node, f"{name}: names with this beginning are reserved")
        return name

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Let a guard read `a.b`, and check `a` before `a.b` is written."""
        root: ast.AST = node.value
        while type(root) is ast.Attribute:
            root = root.value
        if type(root) is ast.Name:
            self._members.append((root.id, node))
        name = self._attribute(node)
        value = self.visit(node.value)
        if isinstance(node.ctx, ast.Load):
            guarded = name in names.GUARDED_ATTRIBUTES
            guard = "_getattr_guarded_" if guarded else "_getattr_"
            return build_call(guard, [value, build_constant(name, node)], node)
        return ast.copy_location(
            ast.Attribute(build_call("_write_", [value], node), name, node.ctx), node
        )

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Allow, in the interpreter's order; check the names of slots."""
        target = node.targets[0]
        if (
            self.scope is not None
            and len(node.targets) == 1
            and isinstance(target, ast.Name)
            and target.id == "__slots__"
        ):
            self._check_slots(node, self.scope)
            return node
        return self.node_contents_visit(node)

    def _check_slots(self, node: ast.Assign, scope: ClassScope) -> None:
        items = (
            node.value.elts
            if isinstance(node.value, ast.Tuple | ast.List)
            else [node.value]
        )
        for item in items:
            name = None
            if isinstance(item, ast.Constant) and isinstance(item.value, str):
                name = names.slot_name(item.value, scope.name)
                item.value = name
            if name is None:
                self.error(item, "__slots__ takes a tuple of literal, plain names")

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Allow; the interpreter reads and writes the target once."""
        target = node.target
        if isinstance(target, ast.Attribute) and (
            self._attribute(target) in names.GUARDED_ATTRIBUTES
        ):
            # The attribute would be read without the guard that examines the object.
            self.error(node, f"write `x.{target.attr} = x.{target.attr} ...` instead")
        return self.node_contents_visit(node)

    # Loops, handlers and expressions

    def visit_TryStar(self, node: ast.AST) -> ast.AST:
        """Allow, and check what is raised before the interpreter splits it."""
        tried: Any = self.node_contents_visit(node)
        check = ast.Expr(build_call("_exact_group_", [], node), **place(node))
        handler = ast.ExceptHandler(
            None, None, [check, ast.Raise(**place(node))], **place(node)
        )
        tried.body = [ast.Try(tried.body, [handler], [], [], **place(node))]
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        """Check the name."""
        if node.name is not None:
            node.name = self.bind(node, node.name)
        return self.node_contents_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Allow; keywords for private fields of a dataclass are renamed."""
        private = any(
            keyword.arg is not None and keyword.arg.startswith("_")
            for keyword in node.keywords
        )
        node = self.node_contents_visit(node)
        if private:
            node.func = build_call("_keywords_", [node.func], node)
        return node

    def _comprehension(self, node: Any, *results: str) -> Any:
        # Only the first iterable is evaluated in the class body.
        first = node.generators[0]
        first.iter = self.visit(first.iter)
        with self._inside_function():
            for number, generator in enumerate(node.generators):
                generator.target = self.visit(generator.target)
                if number:
                    generator.iter = self.visit(generator.iter)
                generator.ifs = [self.visit(test) for test in generator.ifs]
                if generator.is_async:
                    self._refuse_async(generator.iter)
            for result in results:
                setattr(node, result, self.visit(getattr(node, result)))
        return node

    def visit_ListComp(self, node: Any) -> Any:
        """Allow."""
        return self._comprehension(node, "elt")

    visit_SetComp = visit_GeneratorExp = visit_ListComp

    def visit_DictComp(self, node: ast.DictComp) -> Any:
        """Allow."""
        return self._comprehension(node, "key", "value")

    # Functions and classes

    @contextmanager
    def _inside_function(self) -> Iterator[None]:
        outside, self.scope = self.scope, None
        try:
            yield
        finally:
            self.scope = outside

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Remove annotations and check names."""
        self.register_by_annotation(node)
        node.name = self.bind(node, node.name)
        node.decorator_list = [self.visit(item) for item in node.decorator_list]
        node.returns = None
        self.drop_type_parameters(node)
        self._arguments(node.args)
        with self._inside_function():
            self._body(node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """Check names."""
        self._arguments(node.args)
        with self._inside_function():
            node.body = self.visit(node.body)
        return node

    def _arguments(self, arguments: ast.arguments) -> None:
        with self._inside_function():
            for argument in (
                *arguments.posonlyargs,
                *arguments.args,
                *arguments.kwonlyargs,
                *(a for a in (arguments.vararg, arguments.kwarg) if a is not None),
            ):
                argument.annotation = None
                if argument.arg in names.MODULE_NAMES:
                    self.error(argument, f"{argument.arg} may not be an argument")
                self.bind(argument, argument.arg)
        arguments.defaults = [self.visit(item) for item in arguments.defaults]
        arguments.kw_defaults = [
            item if item is None else self.visit(item) for item in arguments.kw_defaults
        ]

    def _body(self, node: Any) -> None:
        body: list[Any] = []
        for statement in node.body:
            result = self.visit(statement)
            body.extend(result if isinstance(result, list) else [result])
        node.body = body

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Check the class statement; its bases are checked at run time."""
        own_name = node.name
        node.name = self.bind(node, own_name)
        node.decorator_list = [self.visit(item) for item in node.decorator_list]
        node.bases = [self.visit(base) for base in node.bases]
        for keyword in node.keywords:
            if keyword.arg not in _CLASS_KEYWORDS:
                self.error(node, f"{keyword.arg or '**'} is not available in a class")
            keyword.value = self.visit(keyword.value)
        self.drop_type_parameters(node)
        outside = self.scope, self._owner
        self.scope = ClassScope(own_name, bound_names(node.body))
        self._owner = own_name
        try:
            self._body(node)
        finally:
            self.scope, self._owner = outside
        return node

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """Visit the whole module."""
        self._body(node)
        return node

    # Refused statements

    def _refuse_async(self, node: ast.AST) -> ast.AST:
        self.error(
            node,
            "async is not available; write plain functions: the daemon runs many "
            "calls at a time",
        )
        return node

    visit_AsyncFor = visit_AsyncFunctionDef = visit_AsyncWith = _refuse_async
    visit_Await = _refuse_async

"""The engine: source text in, code object and outcomes out.  The only place that knows the order of the rules."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType

from .diagnostics import Outcome, Refusal, Site
from .rules.base import Candidate, Rule
from .rules.order import ORDER
from .source import deep_exits
from .source.names import DEFINITIONS
from .source.optout import OptOuts, mistakes
from .source.scopes import Function, ModuleScope, Place
from .source.templates import DELIVERY_ARGUMENTS, OWN, Node, Template, runtime_import

_WHILE_TRACED = Template("if GM.compiling():\n    TRACED\nelse:\n    ORIGINAL")
SWITCHED_OFF = Refusal("GM100-R01", "switched off in the source (# graphmend: off)")


@dataclass(frozen=True)
class Rewritten:
    """What the rules made of one module: its new code, or None where nothing was mended, and every site."""

    code: CodeType | None
    sites: tuple[Site, ...]

    @property
    def mended(self) -> int:
        return sum(site.outcome is Outcome.MENDED for site in self.sites)


@dataclass(frozen=True)
class Change:
    """What became of one statement of `function`: its site, and the statements that now stand in its place, if any.

    statement: it has those inside it as they are after mending.
    """

    site: Site
    function: Function
    statement: ast.stmt
    emitted: tuple[ast.stmt, ...] = ()


def active_rules(names: Sequence[str]) -> tuple[Rule, ...]:
    """The rules called `names`, in the engine's order."""
    return tuple(rule for rule in ORDER if rule.name in names)


def rewrite(source: bytes, filename: str, rules: Sequence[Rule]) -> Rewritten:
    """Apply `rules` to the module text `source`, which came from `filename`.

    Raises SyntaxError as `compile` does.  Code of functions without a mended site equals the stock compile: no flags
    are inherited from here, and the optimisation level is the interpreter's.
    """
    rules = triggered(rules, source)
    if not rules:
        return Rewritten(None, ())
    tree = ast.parse(source, filename)
    return compiled(tree, filename, tuple(change.site for change in rewrite_tree(tree, source, rules)))


def compiled(tree: ast.Module, filename: str, sites: tuple[Site, ...], flags: int = 0) -> Rewritten:
    """What the rules have made of a module, whose `tree` they changed at `sites`.  flags: as `compile` has them."""
    uncompiled = Rewritten(None, sites)
    if not uncompiled.mended:
        return uncompiled
    return Rewritten(name_functions(compile(tree, filename, "exec", flags, dont_inherit=True)), sites)


def changes_of(source: bytes, filename: str, rules: Sequence[Rule]) -> list[Change]:
    """What `rewrite` does with every site of the module text `source`, to be shown.  Raises SyntaxError as it does."""
    rules = triggered(rules, source)
    return rewrite_tree(ast.parse(source, filename), source, rules) if rules else []


def rewrite_tree(tree: ast.Module, source: bytes, rules: Sequence[Rule]) -> list[Change]:
    """Apply `rules` to `tree`, parsed from `source`; what became of every site, in the order of the source.

    The bodies of functions are replaced; no other part of the tree changes.
    """
    changes = _apply(tree, source, rules)
    if any(change.emitted for change in changes):
        _import_runtime(tree)
    return changes


def misspelt(source: bytes) -> dict[int, str]:
    """Comments of the module text `source` that are meant to switch something off and do not, by line."""
    return mistakes(source, [rule.name for rule in ORDER])


def triggered(rules: Sequence[Rule], source: bytes) -> list[Rule]:
    """Those of `rules` that may find something in the module text `source`."""
    sought = {rule.triggers for rule in rules}  # several have the same
    found = {triggers: any(trigger.search(source) for trigger in triggers) for triggers in sought}
    return [rule for rule in rules if found[rule.triggers]]


def _apply(tree: ast.Module, source: bytes, rules: Sequence[Rule]) -> list[Change]:
    scope, optouts = ModuleScope(tree, source), OptOuts(source, tree)
    lifted = deep_exits.lift(scope)
    if lifted:
        scope = ModuleScope(tree, source)
    found = _matched(scope, optouts, rules)
    freed = {place.statement for place, rule, each in found if not rule.fallback and not isinstance(each, Refusal)}
    unmended = [loop for loop in lifted if freed.isdisjoint(loop.exits)]
    if unmended:
        for loop in unmended:
            loop.restore()
        found = _matched(ModuleScope(tree, source), optouts, rules)
    mending = _Mending([(place, each) for place, _, each in found if not isinstance(each, Refusal)])
    changes = []
    of_loops: set[ast.stmt] = {place.statement for place, _, _ in found}
    for place, rule, candidate in found:
        for around in place.inside:
            if isinstance(around, deep_exits.Lifted) and around not in of_loops:
                of_loops.add(around)
                site = Site("where", place.function.qualname, around.lineno)
                changes.append(Change(site, place.function, *mending.made[around]))
        statement, emitted = mending.made.get(place.statement, (place.statement, ()))
        site = Site(rule.name, place.function.qualname, place.statement.lineno)
        if isinstance(candidate, Refusal):
            site, emitted = site._replace(code=candidate.code, reason=candidate.text), ()
        changes.append(Change(site, place.function, statement, emitted))
    return changes


def _matched(
    scope: ModuleScope, optouts: OptOuts, rules: Sequence[Rule]
) -> list[tuple[Place, Rule, Candidate | Refusal]]:
    """What the rules find in the module, by statement."""
    found: list[tuple[Place, Rule, Candidate | Refusal]] = []
    for place in scope.places:
        refused: list[tuple[Place, Rule, Candidate | Refusal]] = []
        for rule in rules:
            candidate = rule.match(place, scope)
            if candidate is None:
                continue
            if _opted_out(place, optouts, rule):
                candidate = SWITCHED_OFF
            if not isinstance(candidate, Refusal):
                found += [*(refused if rule.fallback else ()), (place, rule, candidate)]
                refused = []
                break
            refused = refused or [(place, rule, candidate)]
            if candidate is SWITCHED_OFF:
                break
        found += refused
    return found


class _Mending:
    """Puts what the candidates emit in the place of their statements, and gives the functions new bodies.

    A candidate is given its statement with those inside it mended: a copy, beside which the statement may stand as it
    was written.  No list of statements is ever changed.

    made: by statement, that copy, and what was emitted.
    """

    def __init__(self, candidates: Sequence[tuple[Place, Candidate]]) -> None:
        self._candidates = {place.statement: candidate for place, candidate in candidates}
        self.made: dict[ast.stmt, tuple[ast.stmt, tuple[ast.stmt, ...]]] = {}
        for node in {place.function.node for place, _ in candidates}:
            node.body = self._block(node.body)

    def _block(self, block: Sequence[ast.stmt]) -> list[ast.stmt]:
        mended: list[ast.stmt] = []
        for statement in block:
            copied = statement if isinstance(statement, DEFINITIONS) else self._with_blocks(statement)
            candidate = self._candidates.get(statement)
            if candidate is None and isinstance(statement, deep_exits.Lifted):
                assert isinstance(copied, deep_exits.Lifted)
                emitted = _WHILE_TRACED.fill(statement, TRACED=copied.plain(), ORIGINAL=statement.as_written)
                self.made[statement] = copied, tuple(emitted)
                mended += emitted
            elif candidate is None:
                mended.append(copied)
            else:
                self.made[statement] = copied, tuple(candidate.emit(copied))
                mended += self.made[statement][1]
        return mended

    def _with_blocks(self, node: Node) -> Node:
        """`node` with what is in it mended; itself where that changes nothing."""
        changed: dict[str, object] = {}
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            old = getattr(node, name, None)
            if old:
                of_parts = name in ("handlers", "cases")
                new = [self._with_blocks(part) for part in old] if of_parts else self._block(old)
                if new != old:
                    changed[name] = new
        return ast.copy_location(type(node)(**{**dict(ast.iter_fields(node)), **changed}), node) if changed else node


def _opted_out(place: Place, optouts: OptOuts, rule: Rule) -> bool:
    lines = place.statement.lineno, place.statement.end_lineno or place.statement.lineno
    return optouts.cover(rule.name, lines, *(function.header for function in place.function.lineage()))


def _import_runtime(tree: ast.Module) -> None:
    """Insert the import after the docstring and the ``__future__`` imports."""
    index = 0
    for statement in tree.body:
        docstring = index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not (docstring or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__")):
            break
        index += 1
    tree.body.insert(index, runtime_import(tree.body[min(index, len(tree.body) - 1)]))


def name_functions(code: CodeType, owner: CodeType | None = None) -> CodeType:
    """Give the functions that the rules define the name of the function they stand in, as records will show it."""
    named = owner if owner is not None and _is_ours(code) else code
    constants = tuple(
        name_functions(const, named) if isinstance(const, CodeType) else const for const in code.co_consts
    )
    if any(new is not old for new, old in zip(constants, code.co_consts, strict=True)):
        code = code.replace(co_consts=constants)
    if named is code or owner is None or not _is_ours(code):
        return code
    if sys.version_info >= (3, 11):
        return code.replace(co_name=owner.co_name, co_qualname=owner.co_qualname)
    return code.replace(co_name=owner.co_name)


def _is_ours(code: CodeType) -> bool:
    arguments = code.co_varnames[: code.co_argcount]
    return code.co_name.startswith(OWN) or (code.co_name == "<lambda>" and arguments == DELIVERY_ARGUMENTS)

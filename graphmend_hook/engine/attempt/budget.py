"""How often a frame may be compiled anew because a break was freed in it.

A frame whose break is freed has the guards of what stood behind the break.  Without us they are guards of another
piece, or of none: a counter behind a check, which changes in each call, costs a tail that Dynamo gives up.  So a frame
breaks at the statement before the guard again, as it was written, for as long as Dynamo has code for it, where two
guards on one thing (``len(rows) == 1``, ``len(rows) == 2``) keep code from a call, or four on any things; at once,
where the frame itself adds to what is guarded.  Of what is asked before the first break by the function that it stands
in, which is called and would be a frame of its own, four count.  Guards of ours on values have a budget of their own
(`rules.value.traced_specialised`).
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from ..door.counters import added_to
from ..door.frame_guards import OWN_GUARD
from ..door.missing_guards import BREAKS
from ..door.own_code import is_own
from ..door.tracer import SourceLine, Trace, log, traced_code
from ..graph_end.order import Verdict
from .attempt import Feature, Lifetime
from .compilation import Compilation
from .refusals import COMPILED_AGAIN, Place

_MOST_FAILED = 2  # different guards on one thing that keep the code of a frame from a call
_MOST_OF_ALL = 4  # such guards on any thing
# How guards begin that something is there, or is not: of an attribute that a call makes they fail once.
_OF_TWO = ("hasattr(", "not hasattr(")
_MOST_ATTEMPTS = 3  # to trace a frame without a guard, each with one statement more as it was written
_ON_VALUES = ("CONSTANT_MATCH", "EQUALS_MATCH")
_FREEING = Feature("the graph does not break at a line", Lifetime.CODE)


@dataclass
class _Site:
    """A statement that may be mended.

    guards, decisions: how many the attempt had made when the trace came to it.
    call: where the frame calls the function that it stands in; None if it stands in the frame itself.
    """

    line: SourceLine
    place: Place
    guards: int
    decisions: int
    call: SourceLine | None


@dataclass
class Sites:
    """The statements of an attempt that may be mended, in the order of the trace.

    before, behind, called: what the attempt guards, as in `Inherited`, once the trace is over.
    """

    met: list[_Site] = field(default_factory=list)
    before: set[str] = field(default_factory=set)
    behind: dict[tuple[str, str], _Site] = field(default_factory=dict)
    called: set[tuple[str, str]] = field(default_factory=set)


@dataclass
class Inherited:
    """What a frame remembers of its compilations.

    before: the names that are guarded before the first statement that is mended.
    behind: what is guarded behind one, a name with the line that asks for it, or "" with the place of a decision on
        sizes; and the statement that stood before it last.
    called: those of them that the function asks for which the first statement stands in, before it.
    """

    before: set[str] = field(default_factory=set)
    behind: dict[tuple[str, str], _Site] = field(default_factory=dict)
    called: set[tuple[str, str]] = field(default_factory=set)


@dataclass
class Spent:
    """What the attempts of one compilation hand on: is it known whether the budget is spent?

    names: by the guards on these; attempts: how many have been given up for that.
    """

    is_known: bool = False
    names: set[str] = field(default_factory=set)
    attempts: int = 0


def is_spent_at(trace: Trace) -> bool:
    """Is the statement at hand left as it was written, because a guard behind it has failed too often?"""
    compilation, line = trace.compilation, trace.line
    if compilation.one_graph or line is None:
        return False
    inherited, spent = compilation.memory.of(Inherited), compilation.attempts.of(Spent)
    if not spent.is_known:
        spent.is_known = True
        _look_back(compilation, inherited, spent)
    if not compilation.allows(_FREEING, line):
        return True
    sites = compilation.of(Sites)
    if not sites.met or sites.met[-1].line != line:
        guards, decisions = len(compilation.output.guards), len(compilation.output.shape_env.guards)
        sites.met.append(_Site(line, trace.place, guards, decisions, _call_of(trace)))
    compilation.before_end(_look)
    compilation.at_end(_remember)
    compilation.judge(Verdict.GUARDS, _judge)
    return False


def _call_of(trace: Trace) -> SourceLine | None:
    *inlined, outermost = trace.frames_outside()
    return (outermost.f_code.co_filename, outermost.lineno) if inlined else None


def _look_back(compilation: Compilation, inherited: Inherited, spent: Spent) -> None:
    """Leave statements as they were written if guards behind them have kept all code from the call."""
    if not inherited.behind:
        return
    failed = [(text, key) for text in _failures(compilation) if (key := _key_of(text, inherited))]
    things = {text.partition("  # ")[0].strip(): key for text, key in failed}  # what has changed once has failed once
    beyond = {text: key for text, key in things.items() if key not in inherited.called}
    times = Counter(_asked(text) or name or place for text, (name, place) in beyond.items())
    if len(things) < _MOST_OF_ALL and max(times.values(), default=0) < _MOST_FAILED:
        return
    for text, key in failed:
        site = inherited.behind[key]
        compilation.drop(_FREEING.at(site.line, COMPILED_AGAIN, " ".join(text.split()), site.place))
        spent.names.add(key[0])


def _failures(compilation: Compilation) -> Iterator[str]:
    """Why Dynamo may not run the code that it has for the frame, as it tells it."""
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list
    from torch._dynamo.guards import get_guard_fail_reason_helper

    for entry in _debug_get_cache_entry_list(compilation.code):
        try:
            # It prefixes the number of the compilation, which may be None.
            reason = get_guard_fail_reason_helper(
                entry.guard_manager, compilation.output.root_tx.f_locals, None, entry.backend
            )
        except Exception as error:
            log.debug("no reason to compile anew: %s", error)
            continue
        yield reason.removeprefix("None: ").partition("\nUser stack trace:")[0]


def _key_of(text: str, inherited: Inherited) -> tuple[str, str] | None:
    """Which guard it is that a freed break has brought in; None if it is another one."""
    expression = text.partition("  # ")[0]  # before the line that asks
    if expression.startswith((OWN_GUARD, *_OF_TWO)):
        return None
    decided = [key for key in inherited.behind if not key[0] and key[1] in text]
    if decided:
        return decided[0]
    named = {name for name, _ in inherited.behind if name} | inherited.before
    found = max((name for name in named if _is_named(name, expression)), key=len, default="")
    asked = [key for key in inherited.behind if found and key[0] == found]
    if found in inherited.before:  # guarded there in another way
        asked = [key for key in asked if key[1] and key[1] in text]
    return asked[0] if asked else None


def _asked(text: str) -> str:
    """What a guard asks that has two answers: is a key in a dict?  "" for any other guard."""
    question = text.removeprefix("not ")
    return question if question.startswith("___dict_contains(") else ""


def _is_named(name: str, expression: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", expression) is not None


def _look(compilation: Compilation) -> None:
    """See what the attempt guards before the first statement that is mended, and behind one."""
    sites, output = compilation.of(Sites), compilation.output
    is_left = getattr(output.root_tx, BREAKS, False)  # to eager, all of it, if no break were freed
    first = sites.met[0] if sites.met else None
    for guard, passed in _with_sites(output.guards, [site.guards for site in sites.met], sites.met):
        name, site = _shown(guard.originating_source), passed
        if first is not None and site is None and (is_left or _is_in_call(guard, first.call)):
            site = first
            if not is_left:
                sites.called.add((name, _line_of(guard)))
        if site is None:
            sites.before.add(name)
        elif name and not is_own(guard.name):
            sites.behind[name, _line_of(guard)] = site
    for guard, site in _with_sites(output.shape_env.guards, [site.decisions for site in sites.met], sites.met):
        if site is not None:
            sites.behind |= {("", text): site for text in (str(guard.sloc), *_sizes_fixed_by(guard, output.shape_env))}


def _is_in_call(guard: Any, call: SourceLine | None) -> bool:
    """Is it a function that asks for the guard, which the frame calls there?"""
    stack = [*(guard.user_stack or ())]
    return len(stack) > 1 and (stack[0].filename, stack[0].lineno) == call


def _with_sites(found: Iterable[Any], counts: list[int], sites: list[_Site]) -> Iterator[tuple[Any, _Site | None]]:
    """Each of them with the last of the statements that the trace had come to when it was made; counts: there."""
    for number, item in enumerate(found):
        passed = bisect.bisect_right(counts, number)
        yield item, sites[passed - 1] if passed else None


def _sizes_fixed_by(guard: Any, shapes: Any) -> Iterator[str]:
    """How Dynamo says that a size is another one than that to which a decision (``range(n)``) has fixed it."""
    symbols = guard.expr.free_symbols if getattr(guard.expr, "rel_op", "") == "==" else ()
    for source in shapes.var_to_sources.get(*symbols, ()) if len(symbols) == 1 else ():
        if getattr(getattr(source, "prop", None), "name", "") == "SIZE":
            yield f"tensor '{_shown(source.base)}' size mismatch at index {source.idx}."


def _shown(source: Any) -> str:
    """The expression of the source, as Dynamo shows it where a guard fails."""
    from torch._dynamo.guards import strip_local_scope

    return str(strip_local_scope(source.name))


def _line_of(guard: Any) -> str:
    """The program's line that asks for the guard, as Dynamo shows it; "" if that is not known."""
    frame = guard.user_stack[-1] if guard.user_stack else None
    return "" if frame is None else f":{frame.lineno} in {frame.name}"


def _remember(compilation: Compilation, error: BaseException | None) -> None:
    if error is None:
        sites, inherited = compilation.of(Sites), compilation.memory.of(Inherited)
        inherited.before |= sites.before
        inherited.behind |= sites.behind
        inherited.called |= sites.called


def _judge(compilation: Compilation, _module: torch.fx.GraphModule) -> None:
    """Leave statements as they were written if the graph has, behind them, guards that have failed or are sure to."""
    _look(compilation)
    spent, sites, counters = compilation.attempts.of(Spent), compilation.of(Sites), _counters(compilation)
    names = {key: spent.names if key in sites.called else spent.names | counters for key in sites.behind}
    again = [(key[0], site) for key, site in sites.behind.items() if key[0] in names[key]]
    if not again:
        return
    spent.attempts += 1
    spent.names.update(name for name, _ in again)
    bets = [_FREEING.at(site.line, COMPILED_AGAIN, name, site.place) for name, site in again]
    if spent.attempts > _MOST_ATTEMPTS:  # it was no break that stood before the guard
        bets.append(_FREEING.at())
    compilation.without(*bets, reason="a guard that a freed break has brought in fails too often")


def _counters(compilation: Compilation) -> set[str]:
    """The whole numbers and texts of modules that are guarded, and that the frame adds to: others in the next call."""
    counted = {name for code in traced_code(compilation) for _, name in added_to(code)}
    if not counted or getattr(torch._dynamo.config, "allow_unspec_int_on_nn_module", False):
        return set()
    stored = compilation.output.side_effects.store_attr_mutations
    places = {
        (owner.source, name)
        for owner, values in stored.items()
        for name in counted.intersection(values)
        if values[name].is_python_constant() and type(values[name].as_python_constant()) in (int, str)
    }
    found = set()
    for guard in compilation.output.guards:
        source = guard.originating_source
        place = getattr(source, "base", None), getattr(source, "member", "")
        is_static = source.guard_source.is_unspecialized_nn_module()  # elsewhere Dynamo makes it dynamic
        if place in places and is_static and guard.create_fn_name() in _ON_VALUES:
            found.add(_shown(source))
    return found

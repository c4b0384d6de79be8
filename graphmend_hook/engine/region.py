"""A region: a stretch that is traced though Python might not get there, such as a side of a branch.

Whoever opens one closes it where the stretch ends, and there it is judged what the trace has done in between.  A region
may only compute, and store.  If it has changed anything else that Python could tell, if the graph ends in it, or
tracing it fails, it is given up: the frame is traced anew, with the stretch as it was written.  So too if it has
written to older memory, or drawn, unless it does so only where it is taken (`predicated_writes`, `predicated_draws`).
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NoReturn

import torch

from .attempt.attempt import STEP, Bet, Feature
from .attempt.compilation import Compilation, is_break_or_failure
from .door.own_code import is_of_package
from .door.trace_state import State
from .door.tracer import SourceLine, Trace, log
from .door.variables import Variable, tensor_node
from .facts.operations import may_fail, only_changes_shape, only_computes, only_writes_memory, written_nodes
from .facts.writes import memory_of
from .numbers.size_guards import SizeGuards
from .stores import Stores

REGION = Feature("a region is traced")  # by its place in the trace


@dataclass(frozen=True)
class Codes:
    """What the report says of a region that is given up.

    It ends the graph; or makes a size a fixed number; or does more than to compute, and to store what can be selected.
    """

    ends_graph: str
    fixes_size: str
    does_more: str


class Region:
    """One such stretch.

    at: its place in the trace: a line, and how often the trace has reached it before.
    predicate: a tensor () of bool that says where it is taken, if that is known; is_where_true: where it is true?
    turned_at: the last node of the side that was traced first, once the other one is.
    made: the nodes that were made in it, once it is closed.
    conditions: what says that the side is taken which is taken where the predicate is true, or false, if one was made.
    is_spoilt: has it operations that may not be made where it is not taken?
    unjudged: of each statement that is being traced, one in another, the last node before it, and whether the region
        was spoilt then (see `begin`).
    stores: what its sides store in objects that are older, if it has sides: those of a branch, whose test is known.
    effects: the list, of the trace, that takes what functions which the side at hand calls leave for the end of the
        graph; None in a region that is no side.
    """

    def __init__(self, trace: Trace, at: tuple[SourceLine | None, int], codes: Codes, predicate: Variable) -> None:
        self.at, self.place, self.code, self.codes = at, trace.place, trace.code, codes
        self.predicate, self.is_where_true = predicate, True
        self.turned_at: torch.fx.Node | None = None
        self.made: set[torch.fx.Node] = set()
        self.conditions: dict[bool, torch.fx.Node] = {}
        self.is_spoilt = False
        self.unjudged: list[tuple[torch.fx.Node | None, bool]] = []
        self._before, self._state = {*trace.graph.nodes}, State(trace)
        self._guards, self._sizes = len(trace.output.guards), SizeGuards(trace.output)
        self.stores = None if predicate is None else Stores(trace.output.side_effects, self._state)
        self.effects: Variable = None

    def turn(self, trace: Trace) -> None:
        """From here on, what is traced is the side that is taken where the predicate is false."""
        assert self.stores is not None
        self.stores.end_side()
        self.is_where_true = False
        self.turned_at = next(reversed(trace.graph.nodes), None)

    def nodes(self, trace: Trace) -> list[torch.fx.Node]:
        """Those that were made in it so far."""
        return [node for node in trace.graph.nodes if node not in self._before]

    def begin(self, trace: Trace) -> None:
        """A statement comes next that is judged when it has been traced; until then the region is spoilt."""
        self.unjudged.append((next(reversed(trace.graph.nodes), None), self.is_spoilt))
        self.is_spoilt = True

    def end(self) -> None:
        """The statement may be made where the region is not taken."""
        _, self.is_spoilt = self.unjudged.pop()

    def spoil(self) -> None:
        """It has operations that may not be made where it is not taken."""
        self.is_spoilt, self.unjudged = True, [(last, True) for last, _ in self.unjudged]

    def close(self, trace: Trace) -> None:
        """Has it only computed?  If not, the frame is traced anew, without."""
        if self.unjudged:  # a statement has not been traced to its end
            last, was_spoilt = self.unjudged[0]
            self.is_spoilt = was_spoilt or not all(map(_is_as_if_not_made, nodes_since(trace, last)))
        if self.stores is not None:
            self.stores.end_side()
            self.stores.close()
        made = self.nodes(trace)
        self.made = {*made}
        changed = State(trace).changed_since(self._state)
        self._state.modes.restore()
        own = memory_made(made)
        predicated = trace.compilation.of(Regions).predicated
        # A region that is spoilt is dropped next, and it is said which of its operations may not be made.
        if changed or not (self.is_spoilt or all(computes_in(own, node) for node in made if node not in predicated)):
            log.debug("in a region: %s", changed or "an operation that does more than compute")
            self.give_up(trace.compilation, (self.codes.does_more,))
        if self._sizes.have_fixed():
            self.give_up(trace.compilation, (self.codes.fixes_size,))

    def has_left_guards(self, trace: Trace) -> bool:
        """Would the frame be guarded on what was read in it?"""
        new = itertools.islice(trace.output.guards, self._guards, None)
        return any(not is_of_package(guard.name) for guard in new) or self._sizes.have_grown()

    def bet(self, why: tuple[str, ...]) -> Bet:
        """That on the region.  why: the code of the report if it is lost, and what it is about, if that is known."""
        code, about = (*why, "")[:2]
        return REGION.at(self.at, code, about, self.place)

    def give_up(self, compilation: Compilation, why: tuple[str, ...]) -> NoReturn:
        """Trace the frame anew, with that region as it was written in this compilation.

        Where another one at the line was given up for the same, so are all: a loop over layers would be traced anew
        for each of them.
        """
        bet = self.bet(why)
        if any(
            (lost.place, lost.code, lost.about) == (bet.place, bet.code, bet.about) for lost in compilation.lost(REGION)
        ):
            bet = dataclasses.replace(bet, site=(self.at[0], None))
        step = STEP.at(self.at[0])
        is_step = self.stores is not None and self.at[0] in compilation.of(Regions).steps
        compilation.without(*([bet, step] if is_step else [bet]), reason=f"a region is given up: {why[0]}")


@dataclass
class Regions:
    """The regions of an attempt: those that are open, one in another, and the one that was closed last.

    met: how often a line was reached where one may begin.
    steps: the lines where a branch is a step of a loop that data ends, which stays as written if one is given up.
    predicated: operations that write to older memory, or draw, and only where their region is taken.
    """

    open: list[Region] = field(default_factory=list)
    last: Region | None = None
    met: Counter[SourceLine | None] = field(default_factory=Counter)
    steps: set[SourceLine | None] = field(default_factory=set)
    predicated: set[torch.fx.Node] = field(default_factory=set)

    @property
    def made(self) -> set[torch.fx.Node]:
        """The nodes of the region that was closed last."""
        return self.last.made if self.last is not None else set()


def open_region(trace: Trace, codes: Codes, predicate: Variable = None) -> Bet | None:
    """Open a region where the trace has come to; or give the bet that was lost on the one there."""
    regions = trace.compilation.of(Regions)
    if not regions.met:
        _leave_failures_unsaid(trace.compilation, regions)
    at = trace.line, regions.met[trace.line]
    regions.met[trace.line] += 1
    lost = trace.compilation.dropped(REGION, at) or trace.compilation.dropped(REGION, (trace.line, None))
    if lost is None:
        regions.open.append(Region(trace, at, codes, predicate))
        trace.compilation.at_end(_judge_end)
    return lost


def close_region(trace: Trace) -> None:
    """Close the innermost region; it may order that the frame be traced anew."""
    regions = trace.compilation.of(Regions)
    regions.last = regions.open.pop()
    regions.last.close(trace)


def drop_region(trace: Trace, why: tuple[str, ...]) -> None:
    """What the region that was closed last has computed is not used: trace anew, without, if anything is left of it.

    So are guards, which would be guards of the whole frame.  Of a region in another one the outer is given up.
    """
    regions = trace.compilation.of(Regions)
    dropped = regions.last
    writes = dropped is not None and not regions.predicated.isdisjoint(dropped.made)
    if dropped is not None and regions.open:
        if dropped.is_spoilt or writes:
            regions.open[-1].spoil()
    elif dropped is not None and (dropped.is_spoilt or writes or dropped.has_left_guards(trace)):
        dropped.give_up(trace.compilation, why)


def conditions(trace: Trace) -> list[tuple[torch.fx.Node, bool]] | None:
    """The predicates of the open regions, and where each is taken; None where one is not known."""
    regions = trace.compilation.of(Regions).open
    if any(region.predicate is None for region in regions):
        return None
    return [(tensor_node(region.predicate), region.is_where_true) for region in regions]


def nodes_since(trace: Trace, last: torch.fx.Node | None) -> list[torch.fx.Node]:
    """The nodes behind `last`, in order; inputs, which come first, are none of them."""
    since = itertools.takewhile(lambda node: node is not last, reversed(trace.graph.nodes))
    return [node for node in since if node.op != "placeholder"][::-1]


def _is_as_if_not_made(node: torch.fx.Node) -> bool:
    """Can it stay where nobody uses it, and be as if it were not there: can it fail on no data, nor for want of any?"""
    return not node.op.startswith("call") or not may_fail(node)


def memory_made(made: Iterable[torch.fx.Node]) -> set[int]:
    """The memory that these nodes have made: what they write to it, nobody else can tell."""
    called = {node for node in made if node.op.startswith("call")}
    return memory_of(called) - memory_of(
        operand for node in called for operand in node.all_input_nodes if operand not in called
    )


def computes_in(own: set[int], node: torch.fx.Node) -> bool:
    """Does the operation only compute, and write to such memory alone, or change the shape of what has such?"""
    is_known = only_writes_memory(node) or only_changes_shape(node)
    return only_computes(node) or (is_known and memory_of(written_nodes(node)) <= own)


def _leave_failures_unsaid(compilation: Compilation, regions: Regions) -> None:
    """PyTorch logs an error of each operation that it fails to trace: one in a region is no failure of the program."""

    def is_said(_record: logging.LogRecord) -> bool:
        return not regions.open

    logger = logging.getLogger("torch._subclasses.fake_tensor")
    logger.addFilter(is_said)
    compilation.undo.callback(logger.removeFilter, is_said)


def _judge_end(compilation: Compilation, error: BaseException | None) -> None:
    """Has the attempt ended in a region, by a graph break or an error?  Dynamo would break where that is called."""
    regions = compilation.of(Regions).open
    if regions and is_break_or_failure(error):
        regions[0].give_up(compilation, (regions[0].codes.ends_graph,))

"""What gradients need of an input that the graph writes to, as it was when the graph read it.

AOTAutograd may save the input instead and compute the rest anew in the backward pass, and Inductor takes a copy of the
input for the input itself: of what it has become by then the gradient is wrong, without us too (torch 2.12 to 2.15).
Where a break had stood between the two, it was not.  So what rests on such an input reaches an operation with a
gradient as a copy of which no compiler knows that it is one (`copy_operator`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch.fx import Node
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from ...source import tensor_ops
from ..attempt.as_written import mending
from ..attempt.compilation import Compilation
from ..door.variables import is_sure
from ..facts.gradient_flow import memory_written, recorded, saved_by
from ..facts.operations import facts_of, is_of_torch, is_transforming, name_of, only_computes
from ..facts.writes import bodies_of, fakes_of, memory_of, operations, written_by
from . import copy_operator

_ABOUT_THE_PLACE = ("stack_trace", "nn_module_stack", "custom", "memory_budget")  # of a node's meta


class _GiveWayError(Exception):
    """What a gradient needs cannot be kept in the graph."""


def keep_results(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """Let gradients rest on what the inputs held when they were read; else trace the frame as it was written."""
    try:
        with _modes_at_the_begin(compilation):
            _Keeping(module, compilation.is_saved).keep()
    except NotImplementedError:  # a wrapper of a function transform has no memory of its own
        return
    except _GiveWayError as error:
        if bet := mending(compilation, even_one_graph=True):
            compilation.without(bet, reason=str(error))


@contextlib.contextmanager
def _modes_at_the_begin(compilation: Compilation) -> Iterator[None]:
    """The modes of torch before the trace; Dynamo, which asks for them once more, takes those that it left for them."""
    kept = compilation.output.tracing_context.global_context
    before = kept.global_state
    try:
        with compilation.output.restore_global_state():
            yield
    finally:
        kept.global_state = before


class _Keeping:
    """Goes through the operations of a graph in order.  is_saved: is the compiled code kept for other processes?"""

    def __init__(self, module: torch.fx.GraphModule, is_saved: bool) -> None:
        nodes = [*module.graph.nodes]
        self._module, self._is_saved = module, is_saved
        self._writes = {node: memory_written(module, node) for node in nodes if node.op.startswith("call")}
        self._writes.update({node: set() for node in self._writes if name_of(node) == "requires_grad_"})  # no number
        self._asks = any(node.target is torch.autograd.grad for node in nodes)
        self._places = {node: place for place, node in enumerate(nodes)}
        self._given = memory_of(node for node in nodes if node not in self._writes)
        self._written = self._given.intersection(set().union(*self._writes.values()))
        self._resting = {*self._written}  # memory that rests on those inputs
        self._nodes: set[Node] = set()  # and numbers, and what gives items, which have no memory
        self._moved = {*self._written}  # memory that may hold their numbers as they are
        self._copies: dict[Node, Node] = {}

    def keep(self) -> None:
        """Let operations with a gradient have copies for the operands that rest on an input that is written to.

        So it is with what the program itself copies of any input: it may be about to write to that one.
        """
        copies = {node for node in self._writes if self._copies_input(node)}
        if not (self._written or copies):
            return
        through = recorded(self._module, torch.is_grad_enabled())
        for node, writes in self._writes.items():
            resting = [each for each in _looked_at(node) if self._rests(each)]
            if resting and node in through:
                self._keep_operands(node, resting)
            elif resting and node.meta.get("unbacked_bindings") and not [*fakes_of(node)]:
                self._copy(node, resting if through else [])  # a number, which the backward pass may read once more
            elif resting or (node in copies and node not in through):
                self._nodes.add(node)
                self._resting |= memory_of([node]) | writes
            self._keep_moved(node, writes)
            self._copies = {each: copy for each, copy in self._copies.items() if writes.isdisjoint(memory_of([each]))}

    def _copies_input(self, node: Node) -> bool:
        is_copy = name_of(node) == "clone" or node.kwargs.get("copy") is True
        return is_copy and not self._given.isdisjoint(memory_of(node.all_input_nodes))

    def _rests(self, node: Node) -> bool:
        memory = memory_of([node])
        return not self._resting.isdisjoint(memory) if memory else node in self._nodes

    def _keep_moved(self, node: Node, writes: set[int]) -> None:
        """Does it only move numbers, and to an input?  Inductor may read them at the end of the graph."""
        moved = [each for each in _looked_at(node) if not self._moved.isdisjoint(memory_of([each]) - writes)]
        if moved and _moves(node):
            self._moved |= memory_of([node]) | writes
            if not writes.isdisjoint(self._written):
                self._copy(node, moved)

    def _keep_operands(self, node: Node, resting: list[Node]) -> None:
        for operand in resting:
            memory = memory_of([operand])
            if not memory.isdisjoint(self._writes[node]):
                self._keep_overwritten(node, operand)
            elif memory.isdisjoint(memory_of([node])):  # else it is a view
                if self._is_lost(node, operand):
                    raise _GiveWayError("a gradient needs an input itself that the graph writes to")
                self._copy(node, [operand])

    def _is_lost(self, node: Node, operand: Node) -> bool:
        """Is it an input that is written to before the backward pass looks at it?  In eager, this complains then.

        A checkpoint would run its body on what the input has become.
        """
        memory = memory_of([operand]) & self._written
        if not memory or isinstance(node.target, torch._ops.HigherOrderOperator):
            return bool(memory)
        later = (writes for each, writes in self._writes.items() if self._places[each] > self._places[node])
        if memory.isdisjoint(set().union(*later)):
            return False
        saved = saved_by(node)
        return saved is None or operand in saved[0]

    def _keep_overwritten(self, node: Node, operand: Node) -> None:
        """The operation writes to it: if its gradient needs what was there, let it write to a copy from there on."""
        memory = memory_of([operand])
        bodies = bodies_of(self._module, node)
        if all(_keeps_statistics(each, memory) for each in _flat(bodies, node)):
            return
        saved = None if bodies else saved_by(node)
        if saved is not None and operand not in saved[0] and not saved[1]:
            return
        place = self._places[node]
        aliases = [each for each in self._places if each is not operand and self._places[each] < place]
        users = {user for each in aliases if memory & memory_of([each]) for user in each.users}
        if memory & self._written or any(self._places.get(user, -1) >= place for user in users):
            raise _GiveWayError("a gradient needs what an operation overwrites, which rests on an input")
        copy = self._kept(operand, node)
        for user in [*operand.users]:
            if self._places.get(user, -1) >= place:
                user.replace_input_with(operand, copy)
        self._resting -= memory

    def _copy(self, node: Node, operands: list[Node]) -> None:
        for operand in operands:
            node.replace_input_with(operand, self._copy_of(operand, node))

    def _copy_of(self, operand: Node, user: Node) -> Node:
        """A copy of what it is where it is used; of a view as large as its base, that view of a copy of the base."""
        if operand not in self._copies:
            if self._asks and any(fake.requires_grad for fake in fakes_of(operand)):
                raise _GiveWayError("a gradient that the program asks for is of the tensor itself, and of no copy")
            base = _base_of(operand)
            if base is None:
                self._copies[operand] = self._kept(operand, user)
            else:
                copy = self._copy_of(base, user)
                with operand.graph.inserting_before(user):
                    view = operand.graph.node_copy(operand, lambda each: copy if each is base else each)
                self._copies[operand] = view
        return self._copies[operand]

    def _kept(self, operand: Node, user: Node) -> Node:
        from torch.utils.checkpoint import CheckpointPolicy

        value = operand.meta.get("example_value")
        if not isinstance(value, torch.Tensor) or is_traceable_wrapper_subclass(value) or self._is_saved:
            raise _GiveWayError("a gradient needs what an input held, and it cannot be copied")
        if any(map(is_transforming, operations(self._module))):
            raise _GiveWayError("a gradient needs what an input held, and a function transform has wrapped it")
        if _saves_inputs_only(self._module):
            raise _GiveWayError("a gradient needs what an input held, and the backward pass computes everything anew")
        with operand.graph.inserting_before(user):
            copy = operand.graph.call_function(copy_operator.operator(), (operand,))
        copy.meta = {name: user.meta[name] for name in _ABOUT_THE_PLACE if name in user.meta}
        copy.meta |= {"example_value": value, "recompute": CheckpointPolicy.MUST_SAVE}
        return copy


def _flat(bodies: list[torch.fx.GraphModule], node: Node) -> list[Node]:
    return [each for body in bodies for each in operations(body)] or [node]


def _keeps_statistics(node: Node, memory: set[int]) -> bool:
    """Does the operation not look at the memory, or for numbers only that no gradient rests on?"""
    if memory.isdisjoint(memory_of(node.all_input_nodes)):
        return True
    is_alone = not memory.isdisjoint(written_by(node)) and not any(fake.requires_grad for fake in fakes_of(node))
    return is_alone or name_of(node) in tensor_ops.KEEPING_STATISTICS


def _moves(node: Node) -> bool:
    """May it give numbers as it has got them?  No compiler knows that of what others have added."""
    name, facts = name_of(node).rstrip("_"), facts_of(node)
    is_known = facts.is_pointwise or facts.is_reduction or name in tensor_ops.COMPUTING or not is_of_torch(node)
    return name in tensor_ops.MOVING or not is_known


def _looked_at(node: Node) -> list[Node]:
    """The operands whose numbers it may look at; of the others it takes the form."""
    name, operands = name_of(node), node.all_input_nodes
    if is_of_torch(node) and name.endswith(("_like", "_as")):
        return [each for each in operands if each is node.args[0] and name.endswith("_as")]
    return [*operands]


def _base_of(node: Node) -> Node | None:
    """The tensor of which the node is a view that is as large at least; None where it is none."""
    value, operands = node.meta.get("example_value"), node.all_input_nodes
    if not node.op.startswith("call") or not only_computes(node) or len(operands) != 1:
        return None
    base = operands[0].meta.get("example_value")
    if not (isinstance(value, torch.Tensor) and isinstance(base, torch.Tensor)):
        return None
    is_view = memory_of([node]) == memory_of(operands)
    return operands[0] if is_view and is_sure(base.numel() <= value.numel()) else None


def _saves_inputs_only(module: torch.fx.GraphModule) -> bool:
    """Has the backward pass a budget of no memory?  Then AOTAutograd saves nothing but inputs."""
    budgets = [torch._functorch.config.activation_memory_budget]
    for node in module.graph.nodes:
        custom = node.meta.get("custom") or {}
        budgets += [node.meta.get("memory_budget"), custom.get("_region_activation_memory_budget")]
    return 0 in budgets

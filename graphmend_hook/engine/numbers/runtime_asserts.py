"""What a trace takes for granted of a number that the data decides, asserted of the data.

PyTorch asserts it of the symbol that stands for the number.  But AOTAutograd traces the graph again, where the symbol
has become what was taken for granted of it, and the assertion is folded away.  So each is made once more, of tensors:
of how many rows there are, which no backend knows before it has counted them.  And PyTorch leaves some out: that a size
is at most one or zero it takes for a bound, which it asserts as "at most two".

A device cannot raise, it can only stop, and the host waits for what it reads there.  So these tensors are on the host:
the copy of which a number is read, and as many ones as there are rows, which the host knows by then.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from ..attempt.compilation import Compilation
from ..door.question import question
from ..door.tracer import Trace, log
from ..door.variables import is_wrapper
from ..graph_end.order import Change
from . import first_call

_ASSERTION = torch.ops.aten._assert_scalar.default
_SIZE = torch.ops.aten.sym_size.int
_OFFSET = torch.ops.aten.sym_storage_offset.default
_SAME = frozenset(  # of numbers and of tensors of whole numbers
    {
        *(operator.add, operator.eq, operator.floordiv, operator.ge, operator.gt, operator.le, operator.lt),
        *(operator.mod, operator.mul, operator.ne, operator.neg, operator.sub, operator.and_, operator.or_),
    }
)
_EXTREMES = {torch.sym_max: ("min", torch.maximum), torch.sym_min: ("max", torch.minimum)}  # by a constant, of two
_FACT = re.compile("expression (.+) on node")
_OWN = "graphmend_hook: "
_TEXT = f"{_OWN}what was taken for granted of a number that the data decides does not hold"
# Of an assertion in a side of a branch, which holds where that is not taken.
IN_SIDE = f"{_OWN}index out of bounds in a side that is taken"


def fact_in(error: str) -> str:
    """What did not hold, in the text of an error; "" where it was something else that failed."""
    return error.partition(f"{_TEXT}: ")[2]


class _UnknownError(Exception):
    """The assertion is not about numbers that can be counted."""


def assert_of_data(module: torch.fx.GraphModule, bounds: Mapping[str, tuple[Any, Any]], facts: Iterable[Any]) -> bool:
    """Assert of data what the graph asserts of numbers; False where that cannot be.

    bounds: of symbols, what holds of each by the way it was made.
    facts: what was taken for granted of them, and is asserted whether PyTorch does so or not.
    """
    counted: dict[torch.fx.Node, Any] = {}
    try:
        _assert_missing(module.graph, bounds, facts)
    except Exception as error:  # of what PyTorch cannot say in a graph
        log.debug("not asserted: %s", error)
        return False
    for node in module.graph.find_nodes(op="call_function", target=_ASSERTION):
        condition = node.args[0]
        if not isinstance(condition, torch.fx.Node) or _holds(condition, bounds):
            continue
        with module.graph.inserting_before(node):
            try:
                test = _on_tensors(condition, counted)
            except _UnknownError as error:
                log.debug("not asserted of data: %s (%s)", node.format_node(), error)
                return False
            module.graph.call_function(torch._assert_async, (test, f"{_TEXT}: {_asserted_by(node)}"))
    return True


def is_false_in_this_call(module: torch.fx.GraphModule) -> bool:
    """Does anything that the graph asserts of data not hold in the call for which it is compiled, as far as known?"""
    made = module.graph.find_nodes(op="call_function", target=torch._assert_async)
    conditions = [node.args[0] for node in made if str(node.args[1]).startswith(_TEXT)]
    return first_call.is_any_false(conditions)


def assert_on_host(test: torch.Tensor, text: str) -> None:
    """Let the graph fail where the tensor () of bool is false; all such tests of a device are read by one copy."""
    if test.device.type == "cpu":  # `is_cpu` would be an operation of the graph
        torch._assert_async(test, text)
    else:
        torch._assert_async(test.cpu(), text)
        _expect_others()


@question(otherwise=None)
def _expect_others(trace: Trace) -> None:
    trace.compilation.change(Change.ONE_COPY, _read_together)


def _read_together(_compilation: Compilation, module: torch.fx.GraphModule) -> None:
    """Let the last of the assertions that read a device make those of the others: what they are about harms nobody."""
    by_device: dict[torch.device, list[torch.fx.Node]] = {}
    for node in module.graph.find_nodes(op="call_function", target=torch._assert_async):
        copy, text = node.args
        if copy.op == "call_method" and copy.target == "cpu" and str(text).startswith(_OWN):
            by_device.setdefault(copy.args[0].meta["example_value"].device, []).append(node)
    for nodes in by_device.values():
        tests = [node.args[0].args[0] for node in nodes]
        texts = dict.fromkeys(str(node.args[1]).removeprefix(_OWN) for node in nodes)
        with module.graph.inserting_before(nodes[-1]):
            both = functools.partial(module.graph.call_function, torch.logical_and)
            holds = functools.reduce(lambda one, other: both((one, other)), tests)
            on_host = module.graph.call_method("cpu", (holds,))
            module.graph.call_function(torch._assert_async, (on_host, _OWN + " or ".join(texts)))
        copies = [node.args[0] for node in nodes]
        for dead in (*nodes, *copies):
            module.graph.erase_node(dead)


def facts(output: Any) -> list[Any]:
    """What the graph takes for granted of symbols, as expressions of sympy; output: Dynamo's `OutputGraph`."""
    return [item.expr for items in output.shape_env.deferred_runtime_asserts.values() for item in items]


def is_left_out(fact: Any) -> bool:
    """Does PyTorch take it for a bound that it asserts, and assert less?"""
    return getattr(fact, "rel_op", "") == "<=" and bool(
        fact.args[0].is_symbol and fact.args[1].is_number and fact.args[1] < 2
    )


def _assert_missing(graph: torch.fx.Graph, bounds: Mapping[str, tuple[Any, Any]], facts: Iterable[Any]) -> None:
    """Assert of numbers what the graph does not assert; raises where that cannot be."""
    from torch.fx.proxy import GraphAppendingTracer, Proxy
    from torch.utils._sympy.interp import sympy_interp
    from torch.utils._sympy.reference import OptimizedPythonReferenceAnalysis

    nodes = {_symbol(node): node for node in reversed(graph.nodes) if _symbol(node) is not None}
    asserted = set(map(_asserted_by, graph.find_nodes(op="call_function", target=_ASSERTION)))
    tracer = GraphAppendingTracer(graph)
    for fact in facts:
        if str(fact) in asserted or _is_bound(fact, bounds):
            continue
        known = {symbol: Proxy(nodes[symbol], tracer) for symbol in fact.free_symbols}
        last = max((proxy.node for proxy in known.values()), key=list(graph.nodes).index)
        with graph.inserting_before(last.next):
            condition = sympy_interp(OptimizedPythonReferenceAnalysis, known, fact).node
            graph.call_function(_ASSERTION, (condition, f"expression {fact} on node {condition.name}"))


def _asserted_by(node: torch.fx.Node) -> str:
    """The fact that an assertion is about, which is in its message."""
    found = _FACT.search(str(node.args[1]))
    return found[1] if found else ""


def _symbol(node: Any) -> Any:
    """What a node stands for that gives a number: an expression of symbols."""
    value = node.meta.get("example_value") if isinstance(node, torch.fx.Node) else None
    return value.node._expr if isinstance(value, torch.SymInt) else None


def _is_bound(fact: Any, bounds: Mapping[str, tuple[Any, Any]]) -> bool:
    """Is it a bound of a symbol that PyTorch asserts itself, as it does all lower ones, or that holds in any case?"""
    relation, bound = getattr(fact, "rel_op", ""), fact.args[-1]
    if not (bound.is_number and fact.args[0].is_symbol):
        return False
    return bool(relation == ">=" or (relation == "<=" and bound >= bounds.get(str(fact.args[0]), (0, math.inf))[1]))


def _holds(condition: torch.fx.Node, bounds: Mapping[str, tuple[Any, Any]]) -> bool:
    """Is it no more than a bound that holds by the way the number was made?"""
    number, bound = condition.args if len(condition.args) == 2 else (None, None)
    if not isinstance(number, torch.fx.Node) or type(bound) is not int:
        return False
    symbol = getattr(number.meta.get("example_value"), "node", None)  # None up to torch 2.12
    least = 0 if number.target is _OFFSET else -math.inf
    low, high = bounds.get(str(getattr(symbol, "_expr", "")), (least, math.inf))
    if condition.target is operator.ge:
        return bool(bound <= low)
    return bool(condition.target is operator.le and bound >= high)


def _on_tensors(value: Any, counted: dict[torch.fx.Node, Any]) -> Any:
    """The same, made of tensors of one number."""
    if not isinstance(value, torch.fx.Node):
        return value
    if value not in counted:
        counted[value] = _made(value, counted)
    return counted[value]


def _is_on_host(node: torch.fx.Node) -> bool:
    value = node.meta.get("example_value")
    return isinstance(value, torch.Tensor) and value.device.type == "cpu"


def _is_natural(exponent: Any) -> bool:
    """Is the power of a whole number one too?"""
    return type(exponent) is int and exponent >= 0


def _made(node: torch.fx.Node, counted: dict[torch.fx.Node, Any]) -> Any:
    graph, target = node.graph, node.target
    if any(is_wrapper(operand.meta.get("example_value")) for operand in node.all_input_nodes):
        raise _UnknownError(node.format_node())
    if target is _SIZE:
        tensor, dimension = node.args
        others = [size for place, size in enumerate(tensor.meta["example_value"].shape) if place != dimension]
        if all(type(size) is int and size > 0 for size in others):
            for place in reversed(range(len(others) + 1)):
                if place != dimension:
                    tensor = graph.call_method("select", (tensor, place, 0))
            ones = {"dtype": torch.int64, "device": "cpu", "requires_grad": False}
            return graph.call_method("sum", (graph.call_function(torch.ones_like, (tensor,), ones),))
    if node.op == "call_method" and target == "item":
        is_on_host = _is_on_host(node.args[0])
        with graph.inserting_before(node):  # it may be written to later
            copy = graph.call_method("clone" if is_on_host else "cpu", node.args)
        if not is_on_host:
            node.args = (copy,)  # one look at the device for the number, and for what is asserted of it
        return copy
    if node.op == "call_function" and (target in _SAME or (target is operator.pow and _is_natural(node.args[1]))):
        return graph.call_function(target, tuple(_on_tensors(operand, counted) for operand in node.args))
    if target is torch.sym_not:
        return graph.call_function(torch.logical_not, (_on_tensors(node.args[0], counted),))
    if target is torch.sym_sum:
        terms = [_on_tensors(operand, counted) for operand in node.args[0]]
        return functools.reduce(lambda left, right: graph.call_function(operator.add, (left, right)), terms)
    if target in _EXTREMES:
        limit, of_two = _EXTREMES[target]
        number, bound = sorted(node.args, key=lambda operand: not isinstance(operand, torch.fx.Node))
        if isinstance(bound, torch.fx.Node):
            return graph.call_function(of_two, (_on_tensors(number, counted), _on_tensors(bound, counted)))
        return graph.call_function(torch.clamp, (_on_tensors(number, counted),), {limit: bound})
    raise _UnknownError(node.format_node())

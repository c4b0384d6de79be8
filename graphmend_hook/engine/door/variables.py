"""Dynamo's variables: what a value of the traced code is, as far as the tracer knows it."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_iter

PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
Variable = Any  # `torch._dynamo.variables.base.VariableTracker`, which takes seconds to import


def type_of(variable: Variable) -> type:
    """The type of the value, as far as Dynamo knows it; `object` where it cannot tell.

    A number that nothing has looked at stays one: Dynamo guards on its type, and not on what it is.
    """
    try:
        kind: type = variable.python_type()
    except NotImplementedError:
        return object
    return kind


def kinds_in(kinds: tuple[Any, ...]) -> Iterator[Any]:
    """The kinds that `isinstance` is given: a tuple of such may hold tuples of such."""
    for each in kinds:
        if isinstance(each, tuple):
            yield from kinds_in(each)
        else:
            yield each


def is_tensor(variable: Variable) -> bool:
    """Is it a tensor, of whatever class?"""
    return issubclass(type_of(variable), torch.Tensor)


def is_plain_tensor(variable: Variable) -> bool:
    """Is it a tensor without behaviour of its own?  On no other one may an operation of ours run."""
    return type_of(variable) in PLAIN_TENSORS


def is_wrapper(value: object) -> bool:
    """Is a value of the graph a tensor of a class that sees the operations on it (``__torch_dispatch__``)?

    DTensor is one, and a quantized weight of torchao's: which operations it has is for its class to say.  One with
    nothing but a ``__torch_function__`` is plain in the graph, which Dynamo runs with those off.
    """
    return isinstance(value, torch.Tensor) and type(value) not in (torch._subclasses.FakeTensor, *PLAIN_TENSORS)


def is_unread(variable: Variable) -> bool:
    """Has the trace not looked at the value yet?  To realize its variable would guard on it."""
    return hasattr(variable, "is_realized") and not variable.is_realized()


def python_of(variable: Variable) -> Any:
    """The Python object that the variable stands for."""
    variable = variable.realize()
    for holder in ("value", "fn"):
        if hasattr(variable, holder):
            return getattr(variable, holder)
    return variable.as_python_constant()


def fake_of(variable: Variable) -> Any:
    """The Python object that the variable stands for, with fake tensors in the place of traced ones."""
    variable = variable.realize()
    if variable.is_tensor() or is_symbol(variable):
        return tensor_node(variable).meta["example_value"]
    kind = type(variable).__name__
    if kind in ("TupleVariable", "ListVariable", "SizeVariable"):
        return variable.python_type()([fake_of(item) for item in variable.items])
    if kind == "ConstDictVariable":
        return {python_of(key.vt): fake_of(value) for key, value in variable.items.items()}
    if kind == "SliceVariable":
        return slice(*[fake_of(item) for item in variable.items])
    return python_of(variable)


def is_made_here(variable: Variable) -> bool:
    """Is it an object of a class, a named tuple perhaps, that traced code has made?"""
    variable = variable.realize()
    is_new = type(variable.mutation_type).__name__ == "AttributeMutationNew"
    is_known = (is_new and not _is_frozen(variable)) or type(variable).__name__ == "NamedTupleVariable"
    return variable.source is None and is_known


def _is_frozen(variable: Variable) -> bool:
    """Is it an object of a frozen dataclass, which generated code makes in another way?"""
    return bool(getattr(getattr(type_of(variable), "__dataclass_params__", None), "frozen", False))


def tensor_node(variable: Variable) -> torch.fx.Node:
    """The node of the graph that a tensor is, or a symbolic number."""
    node: torch.fx.Node = variable.realize().as_proxy().node
    return node


def tuple_of(items: Sequence[Variable]) -> Variable:
    """Dynamo's variable of a tuple of these."""
    from torch._dynamo.variables.lists import TupleVariable

    return TupleVariable([*items])


def is_symbol(variable: Variable) -> bool:
    """Is it a number that only the graph knows?"""
    return type(variable.realize()).__name__ == "SymNodeVariable"


def is_unbacked(size: Any) -> bool:
    """Is it a size that the data decides, or a shape with one?"""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    return bool(free_unbacked_symbols(size))


def is_sure(condition: Any) -> bool:
    """Does it hold, of numbers that may be symbols?  Of those that have a value in the trace that is guarded."""
    from torch.fx.experimental.symbolic_shapes import guard_or_false

    return condition if type(condition) is bool else bool(guard_or_false(condition))


def is_known(condition: Any) -> bool:
    """Does it hold, of sizes that may be symbols, whatever those are?  To ask is no guard: see `SizeGuards`."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    return condition if type(condition) is bool else bool(statically_known_true(condition))


def same_sizes(left: Sequence[Any], right: Sequence[Any]) -> bool | None:
    """Are two shapes, or strides, the same?  None where that depends on what symbols are."""
    pairs = list(zip(left, right, strict=False))
    if len(left) != len(right) or any(is_known(one != other) for one, other in pairs):
        return False
    return True if all(is_known(one == other) for one, other in pairs) else None


def has_fixed_sizes(fake: torch.Tensor) -> bool:
    """Is each of its sizes a number?"""
    return all(type(size) is int for size in fake.shape)


def is_contiguous(fake: torch.Tensor) -> bool:
    """Is it for certain, whatever its sizes are?"""
    expected: Any = 1
    for size, stride in zip(reversed(fake.shape), reversed(fake.stride()), strict=True):
        if not (type(size) is int and size == 1) and str(stride) != str(expected):
            return False
        expected = size * expected
    return True


leaves_of = tree_iter  # of tuples, lists and dicts


def without_hooks() -> contextlib.AbstractContextManager[None]:
    """While an operation is tried on fake tensors: what it saves for a backward pass is not handed to hooks."""
    from torch._dynamo.utils import _disable_saved_tensors_hooks_during_tracing

    hooks_off: contextlib.AbstractContextManager[None] = _disable_saved_tensors_hooks_during_tracing()
    return hooks_off


def unread_kinds() -> list[type]:
    """Dynamo's kinds of variables that the trace has not looked at, as far as it has them."""
    from torch._dynamo.variables import lazy

    names = ("LazyConstantVariable", "LazyVariableTracker", "ComputedLazyConstantVariable")
    return [getattr(lazy, name) for name in names if hasattr(lazy, name)]


def answer_before(function: Callable[..., Any], left: type, right: type | None, answer: Callable[..., Any]) -> None:
    """Let `answer` stand where Dynamo calls the builtin with two variables of these kinds, or one, from now on.

    It is given the function, what makes Dynamo's own handler, and what that is given.
    """
    from torch._dynamo.variables.builtin import BuiltinVariable

    kinds = (left,) if right is None else (left, right)
    make = functools.partial(BuiltinVariable._make_handler, function, [*kinds], False)
    handler = functools.partial(answer, function, functools.cache(make))
    BuiltinVariable.call_function_handler_cache[(function,) + kinds] = handler  # noqa: RUF005  Python 3.10


LITTLE = 1 << 24  # bytes that an operation may ask for though nobody may need its result


def most_copied(device: torch.device) -> int:
    """The bytes that may be copied at every call for what is seldom needed: it costs about as much as a graph break."""
    return 1 << 22 if device.type == "cpu" else 1 << 28


def bytes_of(fakes: Any) -> float:
    """The memory of the largest fake tensor in a tree of values; infinite if its size is no plain number."""
    return max((_bytes(fake) for fake in tree_iter(fakes) if isinstance(fake, torch.Tensor)), default=0)


def is_much(result: Any, given: Any) -> bool:
    """Does a result that nobody may need take more memory than little, and than a few copies of its operands?"""
    return bytes_of(result) > max(LITTLE, 4 * bytes_of(given))


def _bytes(fake: torch.Tensor) -> float:
    return at_most(fake.untyped_storage().nbytes())


def at_most(size: Any) -> float:
    """The greatest that the size can be, for all that is known of the symbols in it."""
    if not isinstance(size, torch.SymInt):
        return float(size)
    bound = size.node.shape_env.bound_sympy(size.node.expr).upper
    return float(bound) if bound.is_finite else math.inf

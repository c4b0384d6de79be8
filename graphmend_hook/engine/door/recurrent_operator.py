"""The operators of graphs that stand for recurrent layers: they call `torch.gru`, `lstm`, `rnn_tanh` or `rnn_relu`.

AOTAutograd would unroll most of them, an operation or ten for each step, layer and direction, and round their gradients
otherwise.  So one operator calls eager's function, and what eager's autograd records of that is kept; another one goes
back through it.  It is kept as long as the memory of a tensor which the first operator gives and the second one takes:
the *ticket*.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from ..operators import define, defined, set_gradient
from .variables import PLAIN_TENSORS

_OPERANDS = (
    "Tensor data, Tensor? batch_sizes, Tensor[] states, Tensor[] weights, str function, bool has_biases, "
    "int num_layers, float dropout, bool train, bool bidirectional, bool batch_first, bool records, "
    "bool[] requires_grad, bool[] stays, int draw"
)
_RESULTS = "(Tensor output, Tensor hidden, Tensor cell, Tensor ticket)"
_BACKWARD = "recurrent_backward"


class Tensors(NamedTuple):
    """What a recurrent layer is given: tensors, or what stands for them in a trace or a graph.

    data: (steps, batch, features), or the batch first; of a packed sequence (items, features), and how many items each
    step has.  states: those that it begins with, one or two; weights: of all layers and directions.
    """

    data: Any
    batch_sizes: Any | None
    states: list[Any]
    weights: list[Any]

    @property
    def trained(self) -> list[Any]:
        """Those that may require a gradient."""
        return [self.data, *self.states, *self.weights]

    def replaced(self, trained: list[Any]) -> Tensors:
        """The same, with others in the place of `trained`."""
        data, *others = trained
        return Tensors(data, self.batch_sizes, others[: len(self.states)], others[len(self.states) :])


class Layer(NamedTuple):
    """What else it is called with.

    function: its name in `torch`.  records: does autograd record what is done there?  requires_grad: does each of
    `Tensors.trained` require a gradient?  stays: is its memory the program's, and as it is until the backward pass?
    A compiler may use that of others for something else, once the graph does not need it.  draw: a number of its own if
    it draws (`Draws`).
    """

    function: str
    has_biases: bool
    num_layers: int
    dropout: float
    train: bool
    bidirectional: bool
    batch_first: bool
    records: bool
    requires_grad: list[bool]
    stays: list[bool]
    draw: int

    @property
    def is_recorded(self) -> bool:
        """Does a backward pass go through it?"""
        return self.records and any(self.requires_grad)

    def trained(self, tensors: Tensors) -> list[Any]:
        """Those that require a gradient."""
        return [each for each, flag in zip(tensors.trained, self.requires_grad, strict=True) if flag]

    @property
    def draws(self) -> bool:
        """Does it draw random numbers?"""
        return self.train and self.dropout > 0 and self.num_layers > 1

    def __call__(self, tensors: Tensors) -> list[Tensor]:
        """What eager's function gives: what each step gives, and the last states."""
        data, batch_sizes, states, weights = tensors
        hidden = (*states,) if self.function == "lstm" else states[0]
        given = (self.has_biases, self.num_layers, self.dropout, self.train, self.bidirectional)
        called = getattr(torch, self.function)
        if batch_sizes is not None:
            return [*called(data, batch_sizes, hidden, weights, *given)]
        return [*called(data, hidden, weights, *given, self.batch_first)]

    def shaped(self, tensors: Tensors, device: str | None = None) -> list[Tensor]:
        """Tensors of the shapes and strides of what it gives: the states are as those that it begins with."""
        data, states = tensors.data, tensors.states
        width = states[0].shape[-1] * (2 if self.bidirectional else 1)
        first, *more = data.shape[:-1]
        if more and self.batch_first:
            output = data.new_empty(*more, first, width, device=device).transpose(0, 1)
        else:
            output = data.new_empty(first, *more, width, device=device)
        return [output, *(data.new_empty(state.shape, device=device) for state in states)]


class _Kept(bytearray):
    """The memory of a ticket, eight bytes: its number; and what is kept."""

    results: list[Tensor]
    operands: list[Tensor]  # those that require a gradient


_kept: WeakValueDictionary[int, _Kept] = WeakValueDictionary()
_numbers = itertools.count(1)


def _run(*given: Any) -> tuple[Tensor, ...]:
    tensors, layer = parted(given)
    results, operands = _call(layer, tensors)
    if operands:
        kept = _Kept(next(_numbers).to_bytes(8, sys.byteorder))
        kept.results, kept.operands = results, operands
        ticket = torch.frombuffer(kept, dtype=torch.int64)
        _kept[int(ticket)] = kept
        results = [result.detach().clone() for result in results]  # autograd may have kept the result
    else:
        ticket = _no_ticket()
    return _all_results([*map(_with_strides, results, layer.shaped(tensors, device="meta"))], ticket)


def parted(given: tuple[Any, ...]) -> tuple[Tensors, Layer]:
    """The operands of an operator."""
    count = len(Tensors._fields)
    return Tensors(*given[:count]), Layer(*given[count:])


def _call(layer: Layer, tensors: Tensors) -> tuple[list[Tensor], list[Tensor]]:
    """The results, and the operands that gradients are recorded of.

    An operation of torch may choose its kernel by what requires a gradient, even where none is recorded.
    """
    trained = [each.detach() for each in tensors.trained]
    if layer.is_recorded:
        trained = [each if stays else each.clone() for each, stays in zip(trained, layer.stays, strict=True)]
    for operand, flag in zip(trained, layer.requires_grad, strict=True):
        operand.requires_grad_(flag)
    with _as_in_the_program(layer.records):
        results = layer(tensors.replaced(trained))
    return results, [each for each in trained if each.requires_grad and layer.is_recorded]


@contextlib.contextmanager
def _as_in_the_program(records: bool) -> Iterator[None]:
    """Let operations be dispatched as a program's are, and not as inside of an operator, where autograd has no part."""
    with torch._C._ForceDispatchKeyGuard(*_keys_of_programs()), torch.set_grad_enabled(records):
        yield


@functools.cache
def _keys_of_programs() -> tuple[Any, Any]:
    """What a thread begins with: the keys that are included, and excluded, whatever an operation is given."""
    keys, kinds = torch._C.DispatchKey, torch._C.DispatchKeySet
    excluded = [getattr(keys, name) for name in dir(keys) if name.startswith("Autocast")]
    nothing = kinds(keys.Undefined)
    return kinds(keys.BackendSelect).add(keys.ADInplaceOrView), functools.reduce(kinds.add, excluded, nothing)


def _with_strides(result: Tensor, expected: Tensor) -> Tensor:
    """The result, with the strides that the graph was promised."""
    if result.stride() == expected.stride():
        return result
    return torch.empty_like(expected, device=result.device).copy_(result)


def _all_results(results: list[Tensor], ticket: Tensor) -> tuple[Tensor, ...]:
    output, hidden, *cell = results
    return output, hidden, *(cell or [output.new_empty(0)]), ticket


def _no_ticket() -> Tensor:
    return torch.zeros(1, dtype=torch.int64, device="cpu")


def _run_fake(*given: Any) -> tuple[Tensor, ...]:
    tensors, layer = parted(given)
    return _all_results(layer.shaped(tensors), _no_ticket())


def _go_back(gradients: list[Tensor], are_given: list[bool], ticket: Tensor, *given: Any) -> list[Tensor]:
    (tensors, layer), kept = parted(given), _kept.get(int(ticket))
    if kept is not None:
        results, operands = kept.results, kept.operands
    elif not layer.draws:  # a hook on what autograd saves has moved the ticket: to memory of another tensor
        results, operands = _call(layer, tensors)
    else:
        raise RuntimeError(
            f"graphmend_hook: what the backward pass of torch.{layer.function} needs was moved to other memory, and "
            "cannot be computed again, since the layer has dropout; compile without hooks on saved tensors, or set "
            "dropout to 0"
        )
    retain = torch._C._autograd._get_current_graph_task_keep_graph()
    found = _back_through(results, are_given, operands, gradients, retain_graph=retain)
    return [
        _with_strides(one, torch.empty_like(each, device="meta")) for one, each in zip(found, operands, strict=True)
    ]


def _back_through(
    results: list[Tensor], are_given: list[bool], operands: list[Tensor], gradients: list[Tensor], **how: bool
) -> list[Tensor]:
    """The gradients of the operands, from those of the results that are given one."""
    reached = [result for result, is_given in zip(results, are_given, strict=False) if is_given]
    return [*torch.autograd.grad(reached, operands, gradients, materialize_grads=True, **how)]


def _go_back_fake(_gradients: Any, _are_given: Any, _ticket: Any, *given: Any) -> list[Tensor]:
    tensors, layer = parted(given)
    return [torch.empty_like(operand) for operand in layer.trained(tensors)]


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    tensors, ctx.layer = parted(inputs)
    ticket = output[-1]
    ctx.states = len(tensors.states)
    # Behind these are others, where no compiler makes a backward pass of this; else they are fakes.
    ctx.tensors = tensors if type(tensors.data) in PLAIN_TENSORS else None
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(ticket)
    data = tensors.data.detach().clone()  # the program may write to it, where eager has kept a copy
    ctx.save_for_backward(ticket, tensors.batch_sizes, data, *tensors.states, *tensors.weights)


def _gradients(context: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
    """The gradients of all operands; None for one that requires none."""
    ticket, batch_sizes, data, *others = context.saved_tensors
    states, weights = others[: context.states], others[context.states :]
    layer, results = context.layer, gradients[: 1 + context.states]
    given, are_given = [each for each in results if each is not None], [each is not None for each in results]
    if torch.is_grad_enabled() or any(map(_is_batched, given)):
        found = iter(_gradients_anew(layer, context.tensors, given, are_given))
    else:
        tensors = Tensors(data, batch_sizes, states, weights)
        found = iter(_backward_operator()(given, are_given, ticket, *tensors, *layer))
    of_data, *of_others = [next(found) if requires_grad else None for requires_grad in layer.requires_grad]
    return of_data, None, of_others[: context.states], of_others[context.states :], *[None] * len(layer)


def _is_batched(tensor: Tensor) -> bool:
    """Does it stand for many, as with ``is_grads_batched``?"""
    transforms = torch._C._functorch
    return bool(transforms.is_batchedtensor(tensor) or transforms.is_legacy_batchedtensor(tensor))


def _gradients_anew(
    layer: Layer, tensors: Tensors | None, gradients: list[Tensor], are_given: list[bool]
) -> list[Tensor]:
    """The same, where they have gradients themselves, or many are asked for at once: of the layer, called once more."""
    if tensors is None or layer.draws:
        raise RuntimeError(
            f"graphmend_hook: the gradients of torch.{layer.function} have no gradients themselves, and there can be "
            "one of each only, where it draws; set dropout to 0, or leave the layer out of what is compiled"
        )
    with torch.enable_grad():
        results = layer(tensors)
    return _back_through(results, are_given, layer.trained(tensors), gradients, create_graph=torch.is_grad_enabled())


@functools.cache
def _backward_operator() -> Any:
    operands = f"Tensor[] gradients, bool[] are_given, Tensor ticket, {_OPERANDS}"
    define(_BACKWARD, f"({operands}) -> Tensor[]", _go_back, _go_back_fake)
    return defined(_BACKWARD)


@functools.cache
def operator_for(*, draws: bool) -> Any:
    """The operator, of a layer that draws or of one that does not."""
    name = "drawing_recurrent" if draws else "recurrent"
    tags = (torch.Tag.nondeterministic_seeded,) if draws else ()
    library = define(name, f"({_OPERANDS}) -> {_RESULTS}", _run, _run_fake, *tags)
    set_gradient(library, name, _gradients, setup_context=_save)
    _backward_operator()  # which a graph out of a cache calls, though no backward pass was traced here
    return defined(name)

"""What the schemas and tags of operators say that a call does; what they conceal is here by hand."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ...source.library_functions import NAMESPACE

_OF_TORCH = ("aten", "prims")
# An operator of others with this tag writes to what its schema says, and no more: by the tag its author says that it
# passes `torch.library.opcheck`, which compares the two, and `torch.library.custom_op` sets it.  Without it nobody has
# looked, since a schema is only asked for once somebody compiles: it may write to all that it is given.
_BELIEVED = torch.Tag.pt2_compliant_tag
# Operators of others that compute something of what they are given, and do no more, though no tag says so.
_COMPUTES = frozenset(
    f"torchvision::{name}" for name in ("deform_conv2d", "nms", "ps_roi_align", "ps_roi_pool", "roi_align", "roi_pool")
)
# Operators of torch that write to their running statistics, and do not say so.
_CONCEALED = frozenset(
    {
        *("batch_norm", "_batch_norm_impl_index", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"),
        *("instance_norm", "batch_norm_update_stats", "batch_norm_gather_stats", "batch_norm_gather_stats_with_counts"),
    }
)
_STATISTICS = ("running_mean", "running_var")
# Arguments that, where they are false or zero, keep an operator of torch from drawing and from writing statistics.
_SWITCHES = ("train", "training", "use_input_stats", "dropout", "dropout_p")
# Operators of torch whose result may be what they are given, and whose schemas do not say so.
_GIVES_BACK = frozenset(
    {
        *("as_tensor", "broadcast_tensors", "chunk", "contiguous", "cpu", "cuda", "expand_as", "flatten"),
        *("histogramdd", "meshgrid", "positive", "ravel", "real", "reshape_as", "resolve_conj", "to", "type_as"),
        *("unflatten", "unsafe_split", "view_as"),
    }
)


@dataclass(frozen=True)
class Facts:
    """What an operation may do.

    writes: the arguments that it may write to, by position and by name; None for all of them.
    draws: may it draw random numbers?  Of an operator of others nobody knows from where.
    aliases: may its result share memory with what it is given?
    is_data_dependent: may the data decide the shape of its result, or a number of Python that it gives?
    is_pointwise, is_reduction: does it work element by element, or sum up elements?
    changes_form: does it change the shape or the memory of a tensor that it is given?
    is_of_torch: is it an operation of torch, or one of others that is known as well?
    communicates: may it wait for other processes, which have to make it as often, and in the same order?
    """

    writes: frozenset[int | str] | None = frozenset()
    draws: bool = False
    aliases: bool = False
    is_data_dependent: bool = False
    is_pointwise: bool = False
    is_reduction: bool = False
    changes_form: bool = False
    is_of_torch: bool = True
    communicates: bool = False

    def __or__(self, other: Facts) -> Facts:
        """What an operation may do that does the one or the other, or both."""
        return Facts(
            None if self.writes is None or other.writes is None else self.writes | other.writes,
            self.draws or other.draws,
            self.aliases or other.aliases,
            self.is_data_dependent or other.is_data_dependent,
            self.is_pointwise and other.is_pointwise,
            self.is_reduction and other.is_reduction,
            self.changes_form or other.changes_form,
            self.is_of_torch and other.is_of_torch,
            self.communicates or other.communicates,
        )


NOTHING = Facts()
UNKNOWN = Facts(None, True, True, True, changes_form=True, is_of_torch=False, communicates=True)


def only_gives(overload: Any) -> bool:
    """Does it write to nothing that it is given, as its schema says?"""
    return not overload._schema.is_mutable


def of_call(overloads: tuple[Any, ...], args: Sequence[Any], options: Mapping[str, Any]) -> Facts:
    """What a call does that may be of any of the overloads of an operator."""
    found = _of_any_call(overloads)
    if found is None:
        return functools.reduce(Facts.__or__, [_of_overload_called(overload, args, options) for overload in overloads])
    return found


@functools.cache
def _of_any_call(overloads: tuple[Any, ...]) -> Facts | None:
    """What every call of them does; None if that depends on switches."""
    found = [_of_overload(overload) for overload in overloads]
    if any(switches for _, switches in found):
        return None
    return functools.reduce(Facts.__or__, [facts for facts, _ in found]) if found else UNKNOWN


@functools.cache
def overloads_named(name: str) -> tuple[Any, ...]:
    """The overloads of torch's operator of that name on tensors, without those that are called with ``out=``."""
    packet = getattr(torch.ops.aten, name, None)
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return ()
    every = overloads_of(packet)
    on_tensors = [one for one in every if "Tensor" in str(one._schema)]
    # TorchScript has more under the same names: sorting a list, for one, which is done in place.
    registered = [one for one in every if torch._C._dispatch_has_kernel(one.name())]
    return tuple([one for one in on_tensors if one in registered] or on_tensors or registered)


@functools.cache
def overloads_of(packet: Any) -> tuple[Any, ...]:
    """The overloads of the operator, without those that are called with ``out=``."""
    every = [getattr(packet, name) for name in packet.overloads()]
    return tuple(one for one in every if not any(argument.is_out for argument in one._schema.arguments))


def _of_overload_called(overload: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Facts:
    facts, switches = _of_overload(overload)
    for place, name, default in switches:
        given = options.get(name, args[place] if place < len(args) else default)
        if given is False or (type(given) in (int, float) and given == 0):
            return replace(facts, draws=False, writes=frozenset() if _is_concealed(overload) else facts.writes)
    return facts


@functools.cache
def _of_overload(overload: Any) -> tuple[Facts, tuple[tuple[int, str, Any], ...]]:
    """What the overload does, and where its switches are: position, name and default."""
    schema, tags = overload._schema, set(overload.tags)
    of_torch = overload.namespace in _OF_TORCH
    known = of_torch or overload._schema.name in _COMPUTES or overload.namespace == NAMESPACE
    believed = known or _BELIEVED in tags
    name = overload._schema.name.partition("::")[2]
    concealed = _STATISTICS if _is_concealed(overload) else ()
    written: set[int | str] = set()
    for place, argument in enumerate(schema.arguments):
        if (argument.alias_info is not None and argument.alias_info.is_write) or argument.name in concealed:
            written |= {place, argument.name} if not argument.kwarg_only else {argument.name}
    facts = Facts(
        frozenset(written) if believed else None,
        draws=not known or torch.Tag.nondeterministic_seeded in tags,
        aliases=(
            not believed
            or any(result.alias_info is not None for result in schema.returns)
            or torch.Tag.maybe_aliasing_or_mutating in tags
            or name in _GIVES_BACK
        ),
        is_data_dependent=not of_torch
        or not tags.isdisjoint({torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}),
        is_pointwise=torch.Tag.pointwise in tags,
        is_reduction=torch.Tag.reduction in tags,
        changes_form=torch.Tag.inplace_view in tags,
        is_of_torch=known,
    )
    if not of_torch or not (facts.draws or concealed):
        return facts, ()
    found = [(place, one) for place, one in enumerate(schema.arguments) if one.name in _SWITCHES]
    return facts, tuple((place, one.name, one.default_value) for place, one in found)


def _is_concealed(overload: Any) -> bool:
    return overload.namespace == "aten" and overload._schema.name.partition("::")[2] in _CONCEALED

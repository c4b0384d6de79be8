"""Tensors that share memory with others, or are looked at as objects."""

from __future__ import annotations

import functools
import logging
from typing import Any

import torch
from programs import TAKEN, of, of_each

logger = logging.getLogger("aliasing_cases")


# --- results that share memory, and what is selected ------------------------------------------------------------------


def twice_the_same(x):
    if x.sum() > 0:
        a = c = x * 2
    else:
        a = c = x + 1
    return a, c


def and_a_view(x):
    if x.sum() > 0:
        y = x * 2
        z = y[:2]
    else:
        y = x + 1
        z = y[:2]
    return y, z


def case_results_that_share_memory(C):
    found = []
    for function in (twice_the_same, and_a_view):
        compiled = C(function)
        for value in (-1.0, 1.0):
            one, other = compiled(of(value))
            one.add_(1)
            found.append((one is other, other))
    return found


def noisy(t):
    if t.sum() > 0:
        logger.warning("positive")
        return t
    logger.warning("negative %d", t.dim())
    return t.abs()


def writes_to_what_a_helper_gives(x):
    y = noisy(x)
    y.add_(1)
    return x


def case_writes_to_what_a_helper_gives(C):
    compiled = C(writes_to_what_a_helper_gives)
    return [compiled(of(value)) for value in TAKEN]


# --- what is selected, looked at as an object -------------------------------------------------------------------------


def looks_at_a_gradient(w, x):
    y = w
    if x.sum() > 0:
        y = w * 2
    return y.grad


def looks_at_a_version(w, x):
    y = w
    if x.sum() > 0:
        y = w * 2
    return y._version


def looks_in_a_table(w, x):
    y, known = w, {w: 1}
    if x.sum() > 0:
        y = w * 2
    return y in known


def hooks(w, x):
    y, seen = w, []
    if x.sum() > 0:
        y = w * 2
    y.register_hook(seen.append)
    (y * 3).sum().backward()
    return len(seen), w.grad


def reads_behind(w, x):
    y = w[1:]
    if x.sum() > 0:
        y = y + 1
    return y.as_strided((2,), (1,), 0)


def labels(w, x):
    y = w
    if x.sum() > 0:
        y = w * 2
    setattr(y, "label", 3)  # noqa: B010
    return getattr(w, "label", 0)


def _looked_at(function: Any, C: Any) -> list[Any]:
    compiled, found = C(function), []
    for value in TAKEN:
        w = torch.arange(3.0).add_(1)
        if function in (looks_at_a_gradient, hooks):
            w.requires_grad_().grad = torch.ones(3)
        found.append(compiled(w, of(value)))
    return found


case_looks_at_a_gradient = functools.partial(_looked_at, looks_at_a_gradient)
case_looks_at_a_version = functools.partial(_looked_at, looks_at_a_version)
case_looks_in_a_table = functools.partial(_looked_at, looks_in_a_table)
case_hooks = functools.partial(_looked_at, hooks)
case_reads_behind = functools.partial(_looked_at, reads_behind)
case_labels = functools.partial(_looked_at, labels)


# --- writes to memory that eager does not touch -----------------------------------------------------------------------


def writes_rows(x, t, mask, v):
    if t.sum() > 0:
        x[mask] = v
    return x * 2


def case_writes_nothing_to_an_inference_tensor(C):
    with torch.inference_mode():
        x = torch.arange(3.0)
    return C(writes_rows)(x, of(-1.0), torch.tensor([True, False, True]), torch.tensor(9.0))


def case_writes_nothing_to_what_is_saved(C):
    w, x, found = torch.ones(3, requires_grad=True), torch.arange(3.0), []
    y = (w * x).sum()
    version = x._version
    C(writes_rows)(x, of(-1.0), torch.tensor([True, False, True]), torch.tensor(9.0))
    y.backward()
    return [x._version - version, w.grad, *found]


# --- what a helper gives to a caller that Dynamo runs as it is --------------------------------------------------------


def at_least_zero(x):
    if x.sum() > 0:
        return x
    return x.abs()


class AtLeastZero(torch.nn.Module):
    def forward(self, x):
        return at_least_zero(x)


def written_in_a_caller_that_is_given_up(x):
    kept = x
    for _ in range(2):
        torch._dynamo.graph_break()
        y = at_least_zero(x)
        y.add_(1)
    return kept * 1, y is x


def written_in_a_caller_of_a_module(x):
    kept, module = [x], AtLeastZero()
    for _ in range(2):
        torch._dynamo.graph_break()
        y = module(x)
        y.mul_(3)
    return kept[0] * 1


def labelled_in_a_caller_that_is_given_up(x):
    for _ in range(2):
        torch._dynamo.graph_break()
        x.label = "label"
        y = at_least_zero(x)
    return getattr(y, "label", ""), y + 1


case_callers_that_are_given_up = functools.partial(
    of_each,
    functions=(
        *(written_in_a_caller_that_is_given_up, written_in_a_caller_of_a_module),
        labelled_in_a_caller_that_is_given_up,
    ),
)


# --- a selected tensor, handed on by operations that may give what they are given -------------------------------------


def asks_behind_a_conversion(x):
    y = at_least_zero(x).float()
    return (x + 100) if y is x else y


def asks_behind_what_is_contiguous(x):
    y, seen = at_least_zero(x), set()
    for t in (x, y.contiguous()):
        if t in seen:
            return x * 100
        seen.add(t)
    return x + 1


def asks_for_a_base(x):
    return x + (1 if at_least_zero(x).view(3)._base is x else 2)


def asks_for_a_hash(x):
    return x + (1 if hash(at_least_zero(x)) == hash(x) else 2)


def asks_for_an_address(x):
    return x + (1 if at_least_zero(x)[:].data_ptr() == x.data_ptr() else 2)


case_asked_behind_an_operation = functools.partial(
    of_each,
    functions=(
        *(asks_behind_a_conversion, asks_behind_what_is_contiguous, asks_for_a_base, asks_for_a_hash),
        asks_for_an_address,
    ),
)


# --- inputs that share memory, and writes that no version counts ---------------------------------------------------------


def branch(x, alias):
    y = x + 1
    if x.sum() > 0:
        y = x
    alias.add_(1)
    return y * 2


def number(x, alias):
    count = x[0].int()
    alias.add_(1)
    return torch.ones(9)[: count.item()]


def write_through_data(tensor):
    tensor.data.add_(1)


def branch_behind_autograd(x, other):
    y = x + other
    if x.sum() > 0:
        y = y + 1
    z = y
    write_through_data(y)
    return z * 2


def branch_behind_writes(x, other):
    y = x + 1
    y.clamp_(min=0)
    y[:, :1].mul_(2)
    y.t()[:2].add_(1)
    if x.sum() > 0:
        y = other
    return y


def branch_behind_a_transposed_write(x, other):
    y = x + 1
    y.t().masked_fill_(y.t() > 1, 0.0)
    if x.sum() > 0:
        y = other
    return y

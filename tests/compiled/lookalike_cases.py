"""What looks like torch's and is not: methods of other objects, names that are bound anew, parts with effects."""

from __future__ import annotations

import functools
from itertools import groupby
from typing import Any

import torch
from programs import TAKEN, of, of_each, steps

X = torch.arange(6.0)
VECTORS = ((X,), (X + 1,), (X * 50,))


# --- methods of the program's that an operation would call ------------------------------------------------------------


class Scale:
    calls = 0

    def __rmul__(self, tensor: Any) -> Any:
        self.calls += 1
        return tensor * 3

    def __index__(self) -> int:
        self.calls += 1
        return 3


def multiplies(b, x):
    if x.sum() > 0:
        x = x * b
    return x + 1


def expands(b, x):
    if x.sum() > 0:
        x = x + x.expand(b, 3)[0]
    return x + 1


def case_calls_methods(C):
    found = []
    for function in (multiplies, expands):
        compiled, b = C(function), Scale()
        found += [(compiled(b, of(value)), b.calls) for value in (-1.0, -1.0, 1.0, 1.0)]
    return found


# --- names that stand for something else ------------------------------------------------------------------------------


def no_groups(items, key):
    return [(9, [7.0])]


def groups(x, groupby=no_groups):
    return [list(group) for _, group in groupby(x.tolist(), lambda value: value > 0)]


def really_groups(x):
    return [list(group) for _, group in groupby(x.tolist(), lambda value: value > 0)]


def counts_nothing(x, len=lambda rows: 0):
    out = torch.zeros(3)
    hit = torch.stack([x > 0, x < 0, x > 90])
    for e in range(3):
        (found,) = torch.where(hit[e])
        if len(found) == 0:
            continue
        state = x[found] * 2
        out.index_add_(0, found, state)
    return out


def _for_each_value(functions: Any, C: Any) -> list[Any]:
    return [C(function)(of(value)) for function in functions for value in TAKEN]


case_shadowed_names = functools.partial(of_each, functions=(groups, really_groups, counts_nothing))


def case_a_len_of_the_programs(C):
    """Of a tensor `torch._check` is a TypeError, also where the tensor comes from what is called `len`."""

    def checks(x):
        len = torch.sum
        torch._check(len(x) > x[0].item())
        return x * 2

    return of_each(C, [checks])


def case_a_bound_method_is_an_operand(C):
    """Dynamo has no Python object for the method of a tensor."""

    def multiplies(x):
        method = x.exp
        if x.sum() < 0:
            pass
        else:
            x = x * method
        return x

    def returns(x):
        method = x.exp
        return method() if x.sum() > 0 else x.sin()

    def formats(x):
        method = x.exp
        if (x > 100).any():
            raise ValueError(f"bad {method is None}")
        return x * 2

    return of_each(C, [multiplies, returns, formats])


class Backend:
    """Has methods that are called as a tensor's are."""

    def __init__(self):
        self.torch = torch
        self.reads = 0
        self.stored = torch.zeros(4)

    def __getitem__(self, index):
        return repr((type(index.start).__name__, type(index.stop).__name__))

    def __eq__(self, other):
        return [type(item).__name__ for item in other] == ["Tensor"]

    __hash__ = None

    @property
    def rows(self):
        self.reads += 1
        return self.stored

    @property
    def counts(self):
        self.reads += 1
        return torch.tensor([2, 1])

    def reshape(self, x, sizes):
        return x * 2

    def expand(self, x, *sizes):
        return x + 0.5, [type(size).__name__ for size in sizes]

    def split(self, sizes):
        return type(sizes).__name__

    def repeat_interleave(self, counts, dim=0):
        return counts * 2


@steps(VECTORS)
def methods_of_others(x):
    backend, number = Backend(), torch.tensor(3)
    return x + 1, backend.reshape(number, (1,)), backend.expand(number, number + 1), backend.split(number)


@steps(VECTORS)
def rows_repeated_by_others(x):
    counts = torch.tensor([1, 2])
    return x + 1, Backend().repeat_interleave(counts), Backend().repeat_interleave(counts, dim=1)


@steps(VECTORS)
def a_module_as_an_attribute(x):
    """As einops has it."""
    backend = Backend()
    one = torch.tensor(5)
    return x + 1, backend.torch.reshape(one, (1,)), backend.torch.split(torch.arange(4), 2)


@steps(VECTORS)
def items_of_others(x):
    start = torch.tensor(1)
    return x + 1, Backend()[start : start + 1], Backend() == [start], Backend() != [start]


@steps(VECTORS)
def names_bound_anew(x, number=torch.tensor(3)):  # noqa: B008

    def int(value):
        return value * 2

    def range(value):
        return value + 0.5

    def bool(value):
        return value.sum() > 100

    torch = Backend()
    result = x + int(number) + range(number)
    if bool(x):
        result = result + 1
    return result, torch.reshape(number, (1,))


@steps(VECTORS)
def parts_read_once(x):
    backend, size = Backend(), torch.tensor(2)
    first = backend.rows.reshape(size, 2) + x[:4].reshape(size, size)
    second = backend.rows[: size + 1]
    third = x[:2].repeat_interleave(backend.counts)
    return first, second, third, backend.reads


@steps(VECTORS)
def owners_written_once(x):
    backend, mask = Backend(), torch.tensor([True, False, True, False])
    backend.rows[mask] = 1.5
    backend.rows[: torch.tensor(3)] += 1
    backend.rows[mask] += 2
    return x + 1, backend.stored, backend.reads


@steps(VECTORS)
def in_a_comprehension(x):
    backend, sizes = Backend(), torch.tensor([2, 1])
    return [x[:2].reshape(size, -1) for size in sizes], [backend.rows[:size] for size in sizes], backend.reads


class Proxy:
    """A tensor held by an object that hands its methods on."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __getattr__(self, name):
        found = getattr(self.tensor, name)
        return lambda *args: (found(*[int(arg) for arg in args]), [type(arg).__name__ for arg in args])


@steps(VECTORS)
def methods_handed_on(x):
    size = torch.tensor(2)
    return Proxy(x[:4]).view(size, size), x[:4].view(size, size)

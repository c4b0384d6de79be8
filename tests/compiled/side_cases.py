"""What a side of a branch stores and changes, and what one that is not taken must leave alone."""

from __future__ import annotations

import functools
import itertools
import logging
import random
from typing import Any

import torch
from programs import TAKEN, Thing, of, rows

logger = logging.getLogger("side_cases")


# --- what a side has stored, read through another door ---------------------------------------------------------------


class View:
    def __init__(self, owner: Any) -> None:
        self.owner = owner

    @property
    def doubled(self) -> Any:
        return self.owner.stored * 2

    def __neg__(self) -> Any:
        return -self.owner.stored


def read_by_a_property(b, x):
    if x.sum() > 0:
        b.stored = x * 10
        x = x + b.view.doubled
    return x


def read_by_an_operator(b, x):
    if x.sum() > 0:
        b.stored = x * 10
        x = x + -b.view
    return x


def read_in_a_log(b, x):
    if x.sum() > 0:
        b.stored = x * 10
        logger.warning("stored %s", b.view.doubled)
    return x


def read_by_a_guard(b, x):
    if x.sum() > 0:
        b.stored = x * 10
        if b.view.doubled.sum() > 0:
            raise ValueError("big")
    return x


def read_in_the_namespace(b, x):
    if x.sum() > 0:
        b.stored = x * 10
        x = x + b.__dict__["stored"]
    return x


class Closed:
    @property
    def via(self) -> Any:
        return self.function() * 2


def read_by_a_closure(b, x):
    y = torch.zeros(3)
    b.function = lambda: y
    if x.sum() > 0:
        y = x * 10
        x = x + b.via
    b.function = None
    return x + y


def _stale(function: Any, made: Any, C: Any) -> list[Any]:
    compiled, found = C(function), []
    for value in TAKEN:
        owner = made()
        try:
            found.append(compiled(owner, of(value)))
        except ValueError as error:
            found.append(repr(error))
    return found


def _viewed() -> Thing:
    owner = Thing(stored=torch.zeros(3))
    owner.view = View(owner)
    return owner


case_read_by_a_property = functools.partial(_stale, read_by_a_property, _viewed)
case_read_by_an_operator = functools.partial(_stale, read_by_an_operator, _viewed)
case_read_in_a_log = functools.partial(_stale, read_in_a_log, _viewed)
case_read_by_a_guard = functools.partial(_stale, read_by_a_guard, _viewed)
case_read_in_the_namespace = functools.partial(_stale, read_in_the_namespace, _viewed)
case_read_by_a_closure = functools.partial(_stale, read_by_a_closure, Closed)


# --- what only the class has ------------------------------------------------------------------------------------------


class Classy:
    t = torch.zeros(3)
    n = 1


class Delegating:
    def __init__(self) -> None:
        self.inner = Thing(t=torch.zeros(3))

    def __getattr__(self, name: str) -> Any:
        if name == "inner" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)


def stores_t(b, x):
    if x.sum() > 0:
        b.t = x * 2
    return x + 1


def stores_n(b, x):
    if x.sum() > 0:
        b.n = 1
        x = x + 1
    return x


def case_stores_what_the_class_has(C):
    found = []
    for function, kind in itertools.product((stores_t, stores_n), (Classy, Delegating)):
        if (function, kind) == (stores_n, Delegating):
            continue
        compiled = C(function)
        for value in (-1.0, 1.0):
            thing = kind()
            compiled(thing, of(value))
            found.append(sorted(vars(thing)))
    return found


# --- state that a side changes by what it reads -----------------------------------------------------------------------


class Changing:
    @property
    def fresh(self) -> float:
        return float(next(self.it))

    @property
    def seeded(self) -> float:
        self.rng.seed(5)
        return 2.0

    @property
    def without_gradients(self) -> float:
        torch.set_grad_enabled(False)
        return 2.0

    @property
    def precise(self) -> float:
        torch.set_float32_matmul_precision("medium")
        return 2.0


def draws_from_a_generator(b, x):
    b.it = (i for i in range(1, 9))
    if x.sum() > 0:
        x = x * b.fresh
    given = x * next(b.it)
    b.it = None
    return given


def draws_from_a_range(b, x):
    b.it = iter(range(1, 9))
    if x.sum() > 0:
        x = x * b.fresh
    given = x * next(b.it)
    b.it = None
    return given


def draws_all(b, x):
    it = (i for i in range(4))
    next(it)
    if x.sum() > 0:
        x = x + len(tuple(it))
    return x * len(list(it))


def draws_from_a_chain(b, x):
    it = itertools.chain([1, 2], [3, 4])
    if x.sum() > 0:
        x = x + next(it)
    return x * next(it)


def seeds(b, x):
    first = b.rng.random()
    if x.sum() > 0:
        x = x * b.seeded
    return x * b.rng.random() + first


def _changing(function: Any, C: Any) -> list[Any]:
    compiled, found = C(function), []
    for value in TAKEN:
        b = Changing()
        b.rng = random.Random(0)
        found.append((compiled(b, of(value)), b.rng.random()))
    return found


case_draws_from_a_generator = functools.partial(_changing, draws_from_a_generator)
case_draws_from_a_range = functools.partial(_changing, draws_from_a_range)
case_draws_all = functools.partial(_changing, draws_all)
case_draws_from_a_chain = functools.partial(_changing, draws_from_a_chain)
case_seeds = functools.partial(_changing, seeds)


def switches_gradients(b, x):
    if x.sum() > 0:
        x = x * b.without_gradients
    return x + 1


def switches_precision(b, x):
    if x.sum() > 0:
        x = x * b.precise
    return x + 1


def case_switches_modes(C):
    found = []
    for function in (switches_gradients, switches_precision):
        C(function)(Changing(), of(-1.0))
        found.append((torch.is_grad_enabled(), torch.get_float32_matmul_precision()))
    return found


def allocates(x, n: int):
    if x.sum() > 0:
        y = x + torch.zeros(n).sum()
    else:
        y = x
    return y


def case_allocates_on_a_side_that_is_not_taken(C):
    compiled = C(allocates)
    return [compiled(of(-1.0), 10**13), compiled(of(1.0), 10), compiled(of(-1.0), 10**12)]


# --- attributes that a side creates when they are first needed ---------------------------------------------------------


class Creates(torch.nn.Module):
    """Each method creates an attribute that no other code names, once a side has needed it."""

    def __init__(self):
        super().__init__()
        self.layer, self.scale, self.first = torch.nn.Linear(3, 3), 1.0, torch.ones(3)
        self.register_buffer("now", self.first, persistent=False)

    def of_a_value(self, x):
        if x.sum() > 0:
            if not hasattr(self, "_value"):
                self._value = x.mean()
            x = x + self._value
        return x

    def of_what_changes(self, x):
        if x.sum() > 0:
            if not hasattr(self, "_scaled"):
                self._scaled = torch.ones(3) * self.scale
            x = x + self._scaled
        return x

    def of_the_size(self, x):
        if x.sum() > 0:
            if not hasattr(self, "_places"):
                self._places = torch.arange(x.shape[0])
            x = x + self._places.sum()
        return x

    def of_a_layer(self, x):
        if x.sum() > 0:
            if not hasattr(self, "_layered"):
                self._layered = self.layer(x).detach()
            x = x + self._layered
        return x

    def of_what_fails(self, x):
        if x.sum() > 5000:
            if not hasattr(self, "_viewed"):
                self._viewed = x.view(7)
            x = x + 1
        return x

    def of_what_data_lets_fail(self, x):
        if x.sum() > 0:
            if not hasattr(self, "_root"):
                self._root = torch.linalg.cholesky(x.sum() * torch.eye(3))
            x = x + self._root[0]
        return x

    def of_what_is_not_there(self, x):
        if x.sum() > 5000:
            if not hasattr(self, "_unknown"):
                self._unknown = undefined(x)  # noqa: F821
            x = x + 1
        return x

    def of_what_is_huge(self, x):
        if x.sum() > 5000:
            if not hasattr(self, "_huge"):
                self._huge = torch.zeros(10**12)
            x = x + 1
        return x

    def behind_a_break(self, x):
        if x.sum() > 0:
            if not hasattr(self, "_broken"):
                self._broken = doubled_behind_a_break(x)
            x = x + self._broken
        return x

    def in_a_try(self, x):
        try:
            if x.sum() > 5000:
                if not hasattr(self, "_rare"):
                    self._rare = first_of([])
                x = x + self._rare
        except IndexError:
            x = x * 100
        return x

    def once(self, x):
        if x.sum() > 0:
            if not hasattr(self, "_once"):
                self._once = x * 2
            x = x + self._once
        else:
            if not hasattr(self, "_other"):
                self._other = float(len(x))
            x = x + self._other
        return x

    def twice(self, x):
        return self.once(self.once(x) + 1)

    def of_numbers(self):
        return torch.arange(0, 6, 2, dtype=torch.float) / 2 * self.scale, 7

    def for_a_buffer(self, x):
        """As rotary embeddings whose frequencies depend on the length do."""
        if x.sum() > 0:
            if not hasattr(self, "_long"):
                self._long, _ = self.of_numbers()
            self.register_buffer("now", self._long, persistent=False)
        else:
            self.first = self.first.to(x.device)
            self.register_buffer("now", self.first, persistent=False)
        return x * self.now


def doubled_behind_a_break(x):
    torch._dynamo.graph_break()
    return x * 2


def first_of(items):
    return items[0]


CREATING = (
    *("of_a_value", "of_what_changes", "of_the_size", "of_a_layer", "of_what_fails", "of_what_data_lets_fail"),
    *("of_what_is_not_there", "of_what_is_huge", "behind_a_break", "in_a_try", "once", "twice", "for_a_buffer"),
)


def case_attributes_that_a_side_creates(C):
    found = []
    for method in CREATING:
        torch.manual_seed(0)
        creates = Creates()
        compiled, there = C(getattr(creates, method)), {*vars(creates)}
        for call, value in enumerate((-1.0, -2.0, 1.0, 2.0, -1.0, 4.0)):
            creates.scale = float(call)
            x = torch.ones(5 if call > 2 and method == "of_the_size" else 3) * value
            found.append([method, compiled(x), creates.now, sorted({*vars(creates)} - there)])
    return found


def case_results_without_a_gradient(C):
    """`//` has none, nor has what is left of a number: a side that is not taken fails on no gradient."""

    def divides(x, weight):
        return weight // 2 if x.sum() > 1000 else weight * 2

    def is_divided(x, weight):
        return 7 % weight if x.sum() > 1000 else weight * 2

    found = []
    for function in (C(divides), C(is_divided)):
        weight = rows(3).requires_grad_()
        function(of(1), weight).sum().backward()
        found.append(weight.grad)
    return found

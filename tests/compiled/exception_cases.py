"""What exceptions say, who catches them, and what is done where one is raised."""

from __future__ import annotations

import functools
import logging
from typing import Any

import torch
from programs import TAKEN, of, of_each, steps

logger = logging.getLogger("exception_cases")
NUMBERS = ((of(1), 1), (of(1), -1), (of(1), -2))


def says_what_it_computes(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        if x.sum() > 0:
            raise ValueError(f"{torch.mm(x, x)}")
    return x * 2


def asserts_and_says_what_it_computes(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert x.sum() < 0, f"bad {x @ x}"
    return x * 2


def _texts_of(function: Any, C: Any) -> list[Any]:
    compiled, found = C(function), []
    for value in (1.001, -1.0, 2.003):
        try:
            found.append(compiled(torch.full((2, 2), value)))
        except (ValueError, AssertionError) as error:  # noqa: PERF203
            found.append(str(error))
    return found


case_says_what_it_computes = functools.partial(_texts_of, says_what_it_computes)
case_asserts_and_says_what_it_computes = functools.partial(_texts_of, asserts_and_says_what_it_computes)


def handles(x):
    try:
        raise KeyError("k")
    except KeyError:
        if x.sum() < 0:
            raise ValueError("negative")  # noqa: B904
    return x


def case_the_exception_that_was_handled(C):
    compiled, found = C(handles), []
    for value in TAKEN:
        try:
            found.append(compiled(of(value)))
        except ValueError as error:  # noqa: PERF203
            found.append(repr(error.__context__))
    return found


# --- what a guard says, and who may catch it --------------------------------------------------------------------------


class Limits:
    limit = 1


class StepError(Exception):
    def __init__(self, text):
        super().__init__(text, Limits.limit)


def _text():
    return f"limit {Limits.limit}"


def _error():
    return ValueError(_text())


def says_an_attribute(x):
    Limits.limit = 1
    if x.sum() > 0:
        raise ValueError(Limits.limit)
    Limits.limit = 2
    return x


def says_what_its_class_reads(x):
    Limits.limit = 1
    if x.sum() > 0:
        raise StepError("bad")
    Limits.limit = 2
    return x


def says_what_a_helper_reads(x):
    Limits.limit = 1
    if x.sum() > 0:
        raise _error()
    Limits.limit = 2
    return x


class Guarded:
    def __init__(self, x):
        self.x = x

    @property
    def good(self):
        if self.x.sum() > 0:
            raise AttributeError("positive")
        return 1.0


def stopper(x):
    if x.sum() > 0:
        raise StopIteration
    return x


def asks_for_an_attribute(x):
    return getattr(Guarded(x), "good", 9.0), hasattr(Guarded(x), "good")


def maps(x):
    return len(list(map(stopper, [x, x])))


def case_messages(C):
    found = []
    for function in (
        *(says_an_attribute, says_what_its_class_reads, says_what_a_helper_reads),
        *(asks_for_an_attribute, maps),
    ):
        compiled = C(function)
        for value in TAKEN:
            try:
                found.append(compiled(of(value)))
            except (ValueError, StepError) as error:  # noqa: PERF203
                found.append(repr(error))
    return found


# --- exceptions that Python itself catches ----------------------------------------------------------------------------


class NotThere(AttributeError):
    pass


class AtAnEnd(StopIteration):
    pass


Alias = AttributeError


class Fails:
    def __init__(self, x):
        self.x = x

    @property
    def missing(self):
        if self.x.sum() > 0:
            raise NotThere("positive")
        return 1.0

    @property
    def by_alias(self):
        if self.x.sum() > 0:
            raise Alias("positive")
        return 1.0

    @property
    def by_check(self):
        torch._check_with(NotThere, bool(self.x.sum() <= 0), lambda: "positive")
        return 1.0

    @property
    def refused(self):
        if self.x.sum() > 0:
            raise ValueError("positive")
        return 1.0

    def __getitem__(self, index):
        if index > 2:
            raise IndexError(index)
        self.check(index)
        return self.x * index

    def check(self, index):
        if (self.x * index).sum() > 3:
            raise IndexError(f"at {index}")


class Counts:
    def __init__(self, x):
        self.x, self.number = x, 0

    def __iter__(self):
        return self

    def __next__(self):
        self.number += 1
        if self.number > 3:
            raise StopIteration
        if (self.x * self.number).sum() > 8:
            raise AtAnEnd
        return self.x * self.number


def failing(x, kind):
    if x.sum() > 0:
        raise kind("x")
    return x


HEARD = (
    *(lambda x, name=name: x * getattr(Fails(x), name, 9.0) for name in ("missing", "by_alias", "by_check", "refused")),
    lambda x: x + len(list(map(lambda each: failing(each, StopIteration), [x, x]))),  # noqa: C417
    lambda x: x + len([each for each in Fails(x)]),
    lambda x: x + sum(Counts(x)),
    lambda x: failing(x, ValueError) + failing(x - 2, KeyError),
)


def case_exceptions_that_python_catches(C):
    return of_each(C, HEARD)


# --- what is done where a guard fails ---------------------------------------------------------------------------------


def checked(x):
    if x.sum() > 0:
        raise ValueError("positive")
    return x * 2


def raises_another(x):
    done = False
    try:
        y, done = checked(x), True
    finally:
        if not done:
            raise KeyError("another")
    return y


def logs_a_failure(x):
    done = False
    try:
        y, done = checked(x), True
    finally:
        if not done:
            logger.warning("failed")
    return y


def told(done):
    if not done:
        logger.warning("failed")


def tells_of_a_failure(x):
    done = False
    try:
        y, done = checked(x), True
    finally:
        told(done)
    return y


class AlwaysCalls(torch.nn.Module):
    def __init__(self, always):
        super().__init__()
        self.inner = torch.nn.Identity()
        self.inner.register_forward_pre_hook(lambda module, given: checked(given[0]))
        self.inner.register_forward_hook(lambda *given: logger.warning("called"), always_call=always)

    def forward(self, x):
        return self.inner(x) * 2


def case_failures_that_are_told(C):
    hooked = [AlwaysCalls(always).forward for always in (True, False)]
    return of_each(C, (raises_another, logs_a_failure, tells_of_a_failure, *hooked))


@steps(NUMBERS)
def text_of_a_number(x, n):
    assert n > 0, f"{n:04d}"
    return x


@steps(NUMBERS)
def text_of_a_number_or(x, n):
    assert x.sum() > 100 or n > 0, f"{n}"
    return x + 1

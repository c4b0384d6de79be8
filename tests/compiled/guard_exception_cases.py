"""The exceptions of guards: classes, causes, messages, and who handles them.  Imported twice: as they are, and mended.

``EXPECT`` gives what is expected of each; "H7" is hazard 7 of the list of hazards.
"""

from __future__ import annotations

import builtins
import contextlib

import torch
from expectations import COMPARED, DOWN, GUARDED, UP, Expectation, register, t

EXPECT: dict[str, Expectation] = {}
case = register(EXPECT, inputs=GUARDED, raises=True, graphs=1)


# --- H16: the exception ----------------------------------------------------------------------------------------------


class Odd(ValueError):
    def __init__(self, what: str, *, where: int = 3) -> None:
        super().__init__(what)
        self.where = where

    def __str__(self) -> str:
        return f"{self.args[0]} at {self.where}"


class OddAssertion(AssertionError):
    pass


@case()
def h16_a_class_of_its_own(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise Odd("negative", where=x.shape[0])
    return x + 1


@case()
def h16_a_class_without_a_call(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise OddAssertion
    return x + 1


CAUSE = KeyError("the cause")


@case()
def h16_raise_from(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError("negative") from CAUSE
    return x + 1


@case()
def h16_raise_from_a_new_one_and_none(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError("negative") from KeyError("new")
    if x.max() < 0:
        raise ValueError("negative") from None
    return x + 1


def make_error(text: str) -> Exception:
    return Odd("made of " + text)


@case()
def h16_an_exception_made_by_a_helper(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise make_error("this")
    return x + 1


@case(declined="GM103-R16")
def h16_a_handler_around_the_guard(x: torch.Tensor) -> torch.Tensor:
    try:
        if x.sum() < 0:
            raise ValueError("negative")
    except ValueError:
        x = x + 100
    return x + 1


def complain(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError("negative")
    return x + 1


@case(declined="GM101-T10")
def h16_a_handler_in_the_caller(x: torch.Tensor) -> torch.Tensor:
    try:
        y = complain(x)
    except ValueError:
        y = x + 100
    return y + 1


@case()
def h16_a_finally_around_the_guard(x: torch.Tensor) -> torch.Tensor:
    try:
        if x.sum() < 0:
            raise ValueError("negative")
    finally:
        x = x + 100
    return x + 1


# --- H19: messages ---------------------------------------------------------------------------------------------------


@case(inputs=GUARDED)
def h19_a_message_computed_from_tensors(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError(f"least {x.min().item():.3f} of {x.shape}, {x}" + " {} %s".format(x.max()) % x.dtype)
    return x + 1


@case()
def h19_a_value_as_of_the_guard(x: torch.Tensor) -> torch.Tensor:
    y = x.detach() + 0
    if y.sum() < 0:
        raise ValueError(f"now {y.tolist()}")
    y.add_(100)
    return x + y


class Text:
    """Counts how often it is asked for."""

    asked = 0

    def __str__(self) -> str:
        Text.asked += 1
        return "text"


TEXT = Text()


@case()
def h19_a_message_is_made_when_it_is_needed(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError(f"bad {TEXT}")
    return x + 1


def cannot_be_called() -> str:
    raise AssertionError("the message is made although the guard holds")


@case(inputs=((UP,),), raises=False)
def h19_a_message_that_cannot_be_made(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError(cannot_be_called())
    return x + 1


# --- texts with tensors in them, under a mode of torch that ends before the graph does --------------------------------


@case()
@torch.no_grad()
def a_text_under_a_decorator(x: torch.Tensor) -> torch.Tensor:
    n = x.sum()
    if n < 0:
        raise ValueError(f"{n}, {n.item()} of {x.shape}")
    return x * 2


@case()
def a_text_in_no_grad(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        n = x.sum()
        assert n > 0, f"{n.item():.2f} of {tuple(x.size())}"
    return x * 2


@case()
@torch.inference_mode()
def arguments_in_inference_mode(x: torch.Tensor) -> torch.Tensor:
    n = x.sum()
    if n < 0:
        raise ValueError("negative", n, [n * 2])
    return x * 2


@case(inductor=True)
def a_text_that_computes_in_autocast(x: torch.Tensor) -> torch.Tensor:
    rows = x.detach().reshape(1, 3)
    with torch.autocast("cpu", torch.bfloat16):
        if (x < 0).any():
            raise ValueError(f"{torch.matmul(rows, rows.reshape(3, 1)).mul(1.01)}")
    return x * 2


@case()
def a_text_that_computes_with_autocast_off(x: torch.Tensor) -> torch.Tensor:
    rows = x.detach().reshape(1, 3)
    with torch.autocast("cpu", torch.bfloat16), torch.autocast("cpu", enabled=False):
        torch._check_value(not (x < 0).any(), lambda: f"{torch.matmul(rows, rows.reshape(3, 1)).mul(1.01)}")
    return x * 2


@torch.no_grad()
def _checked(x: torch.Tensor) -> torch.Tensor:
    n = x.sum()
    with torch.enable_grad(), contextlib.nullcontext():
        if n < 0:
            raise ValueError(f"{n} {[n]}")
    return n


@case()
def a_text_in_a_decorated_function(x: torch.Tensor) -> torch.Tensor:
    return x * _checked(x.detach())


# --- handlers that are easily overlooked ---------------------------------------------------------------------------------


def _negative(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError("negative")
    return x


def _suppressed(x: torch.Tensor) -> torch.Tensor:
    with contextlib.suppress(ValueError):
        _negative(x)
    return x + 1


@case(declined="GM101-T05")
def h16_suppressed_in_a_function(x: torch.Tensor) -> torch.Tensor:
    return _suppressed(x) * 2


@case(declined="GM101-T05")
def h16_suppressed_inside_a_try(x: torch.Tensor) -> torch.Tensor:
    try:
        with contextlib.suppress(ValueError):
            _negative(x)
    finally:
        x = x + 1
    return x


@case(declined="GM101-T10")
def h16_a_return_in_a_finally(x: torch.Tensor) -> torch.Tensor:
    try:
        if x.sum() < 0:
            raise ValueError("negative")
    finally:
        return x + 1  # noqa: B012


@case(declined="GM101-T10")
def h16_caught_as_one_of_many(x: torch.Tensor) -> torch.Tensor:
    try:
        y = _negative(x)
    except (torch.cuda.OutOfMemoryError, torch.fx.proxy.TraceError, torch.jit.Error, builtins.ValueError):
        y = x + 100
    return y * 2


@case(declined="GM101-T10")
def h16_a_guard_in_the_finally_of_another(x: torch.Tensor) -> torch.Tensor:
    try:
        if x.sum() < 0:
            raise ValueError("negative")
    finally:
        if x.max() < 0:
            raise KeyError("all")
    return x


@case(declined="GM101-T11")
def h16_a_caught_assert_of_not(x: torch.Tensor) -> torch.Tensor:
    try:
        assert not (x < 0).any()
    except AssertionError:
        return x * 0
    return x + 1


@case(declined="GM101-T11", inputs=COMPARED)
def h16_a_caught_assert_of_equal(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    try:
        assert torch.equal(x, y), "unequal"
    except AssertionError as error:
        return x * len(str(error))
    return x + 1


@case(declined="GM101-T11")
def h16_a_caught_assert_of_an_item(x: torch.Tensor) -> torch.Tensor:
    with contextlib.suppress(AssertionError):
        assert x.min().item() > 0
        x = x + 1
    return x


def _asserts(x: torch.Tensor) -> torch.Tensor:
    assert len(x) > 5 or not (x < 0).any()
    return x + 1


@case(declined="GM101-T11")
def h16_an_assert_that_the_caller_catches(x: torch.Tensor) -> torch.Tensor:
    try:
        return _asserts(x)
    except AssertionError:
        return x * 0


@case(declined="GM101-T11", inputs=((DOWN, t(1.0, 2.0)),))
def an_assert_before_what_cannot_be_traced(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    assert not (x < 0).any(), "negative"
    return x * y


class _Catching:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> bool:
        return True


@case(declined="GM101-T11")
def h16_an_assert_in_a_context_manager_that_catches(x: torch.Tensor) -> torch.Tensor:
    with _Catching():
        assert not (x < 0).any()
        x = x + 1
    return x


class Caught:
    """Asserts that handlers of the program's catch."""

    @staticmethod
    def here(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        try:
            assert (x > 0).all(), "negative"
        except AssertionError as error:
            y = y + len(str(error))
        return y + 1

    @staticmethod
    def by_the_caller(x: torch.Tensor) -> torch.Tensor:
        try:
            return Caught._asserts(x * 2)
        except AssertionError:
            return x - 1

    @staticmethod
    def _asserts(x: torch.Tensor) -> torch.Tensor:
        assert x.min() > 0
        return x + 1

    @staticmethod
    def by_a_context(x: torch.Tensor) -> torch.Tensor:
        with contextlib.suppress(AssertionError):
            assert (x > 0).all()
            x = x + 10
        return x * 2

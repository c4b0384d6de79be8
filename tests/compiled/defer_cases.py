"""Functions with effects, as a user would write them.  Imported twice: as they are, and mended.

``EXPECT`` gives, for each, the graphs of the mended form; ``fullgraph=False`` where one graph is not to be had.
"""

from __future__ import annotations

import builtins
import contextlib
import enum
import io
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

logger = logging.getLogger("defer_cases")
adapter = logging.LoggerAdapter(logger, {})


@dataclass(frozen=True)
class Expectation:
    graphs: int = 1
    fullgraph: bool = True
    train: bool = False
    refusals: frozenset[str] = field(default_factory=frozenset)
    perhaps: frozenset[str] = field(default_factory=frozenset)  # refusals of some versions of torch


EXPECT: dict[str, Expectation] = {}


def case(
    graphs: int = 1,
    fullgraph: bool = True,
    train: bool = False,
    refusals: tuple[str, ...] = (),
    perhaps: tuple[str, ...] = (),
) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        EXPECT[function.__name__] = Expectation(graphs, fullgraph, train, frozenset(refusals), frozenset(perhaps))
        return function

    return register


def helper(x: torch.Tensor, tag: str) -> torch.Tensor:
    logger.warning("%s has %s", tag, x.shape)
    return x * 2


# --- where the effect stands -----------------------------------------------------------------------------------------


@case()
def in_the_root(x: torch.Tensor) -> torch.Tensor:
    logger.warning("here")
    return x + 1


@case()
def three_calls_deep(x: torch.Tensor) -> torch.Tensor:
    return Outer()(x)


class Inner(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.log = logger

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.log.warning("inner %d", x.dim())
        return helper(x, "inner")


class Middle(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = torch.nn.Sequential(Inner(), Inner())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block(x)


class Outer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.middle = Middle()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logger.warning("outer")
        return self.middle(x)


OUTER = Outer()


@case()
def a_module_made_before(x: torch.Tensor) -> torch.Tensor:
    return OUTER(x)


@case()
def in_a_loop(x: torch.Tensor) -> torch.Tensor:
    for index in range(3):
        logger.warning("round %d", index)
        x = helper(x, f"round {index}")
    return x


def produce(x: torch.Tensor) -> Iterator[torch.Tensor]:
    for index in range(2):
        logger.warning("produce %d", index)
        yield x + index


@case()
def in_a_generator(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros_like(x)
    for item in produce(x):
        total = total + item
    return total


def decorate(function: Any) -> Any:
    def wrapper(*args: Any) -> Any:
        print("enter", function.__name__)
        result = function(*args)
        print("leave", function.__name__)
        return result

    return wrapper


@decorate
def decorated_helper(x: torch.Tensor) -> torch.Tensor:
    print("inside")
    return x + 1


@case()
def in_a_decorated_function(x: torch.Tensor) -> torch.Tensor:
    return decorated_helper(x)


@case()
def in_a_closure(x: torch.Tensor) -> torch.Tensor:
    scale = 3

    def inner(y: torch.Tensor) -> torch.Tensor:
        print(f"scale {scale}")
        return y * scale

    return inner(x)


@case()
def in_a_forward_hook(x: torch.Tensor) -> torch.Tensor:
    return HOOKED(x)


torch.manual_seed(0)
HOOKED = torch.nn.Linear(3, 3)
HOOKED.register_forward_hook(lambda module, args, output: helper(output, "hook"))


@case()
def under_vmap(x: torch.Tensor) -> torch.Tensor:
    return torch.func.vmap(lambda row: helper(row, "row"))(x.expand(2, 3))


@case()
def under_grad(x: torch.Tensor) -> torch.Tensor:
    return torch.func.grad(lambda y: helper(y, "grad").sum())(x)


@case()
def under_no_grad(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        logger.warning("quietly")
    return x + 1


# --- what the effect is ----------------------------------------------------------------------------------------------


@case()
def every_level(x: torch.Tensor) -> torch.Tensor:
    logger.debug("d")
    logger.info("i")
    logger.warning("w")
    logger.error("e")
    logger.critical("c")
    logger.log(35, "between")
    return x + 1


@case()
def a_logger_found_at_the_call(x: torch.Tensor) -> torch.Tensor:
    logging.getLogger("defer_cases").warning("found")
    local = logging.getLogger("defer_cases")
    local.warning("and kept")
    return x + 1


@case()
def a_warning(x: torch.Tensor) -> torch.Tensor:
    warnings.warn("plain")
    warnings.warn("with a category", DeprecationWarning)
    warnings.warn("with a stacklevel", FutureWarning, stacklevel=1)
    return x + 1


@case()
def a_print(x: torch.Tensor) -> torch.Tensor:
    print()
    print("a", 1, None, sep="-", end="!\n", flush=True)
    print("to stderr", file=sys.stderr)
    return x + 1


@case()
def the_order_of_all(x: torch.Tensor) -> torch.Tensor:
    print("1")
    logger.warning("2")
    warnings.warn("3")
    print("4", file=sys.stderr)
    return helper(x, "5")


# --- its arguments ---------------------------------------------------------------------------------------------------


@case()
def a_tensor_written_to_later(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    print("before", y, f"{y.sum():.2f}")
    y.add_(1)
    logger.warning("after %s", y)
    return y


@case()
def a_list_written_to_later(x: torch.Tensor) -> torch.Tensor:
    seen = [1]
    table = {"n": seen}
    print(seen, table)
    seen.append(2)
    print(seen, table)
    return x + 1


@case()
def every_kind_of_text(x: torch.Tensor) -> torch.Tensor:
    n, width = x.shape[0], 8
    print(f"{n!r:>{width}}|{x.dtype}|{x.shape}|{x.device}")
    print("%d of %s" % (n, "many") + " {} {k:>3}".format(n, k="z"))
    print("%s" % n, "a" + f"b{n}")
    print("%(n)d" % {"n": n})
    return x + 1


@case()
def requires_grad_with_a_format(x: torch.Tensor) -> torch.Tensor:
    weight = torch.nn.functional.relu(HOOKED.weight.detach()).sum()
    print(f"{weight:.3f}", weight.shape)
    return x + 1


@case()
def arguments_with_effects(x: torch.Tensor) -> torch.Tensor:
    numbers = iter(range(10))
    print(next(numbers))
    print(next(numbers), next(numbers))
    return x + next(numbers)


@case()
def a_walrus_in_an_argument(x: torch.Tensor) -> torch.Tensor:
    print(n := x.dim(), [i for i in range(n)])
    return x + n


# --- around other breaks ---------------------------------------------------------------------------------------------


@case(graphs=2, fullgraph=False)
def around_a_graph_break(x: torch.Tensor) -> torch.Tensor:
    print("before")
    x = helper(x, "before")
    torch._dynamo.graph_break()
    print("after")
    return helper(x, "after")


@case(graphs=2, fullgraph=False, refusals=("GM100-T03",))
def a_break_among_the_arguments(x: torch.Tensor) -> torch.Tensor:
    logger.warning("sum %s", sum(x.sigmoid().tolist()))
    logger.warning("done")
    return x + 1


@case()
def under_a_tensor_branch(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        logger.warning("positive")
    else:
        logger.warning("negative")
    return x + 1


@case(graphs=0, fullgraph=False, refusals=("GM101-T10", "GM101-T11"))
def before_an_exception_that_is_caught(x: torch.Tensor) -> torch.Tensor:
    try:
        complain(x)
    except ValueError:
        print("caught")
    return x + 1


def complain(x: torch.Tensor) -> None:
    logger.error("about to raise")
    raise ValueError("no")


@case(graphs=0, fullgraph=False, refusals=("GM101-T11",))
def before_an_exception(x: torch.Tensor) -> torch.Tensor:
    complain(x)
    return x


# --- tensors that require a gradient: the text is that of eager --------------------------------------------------------


@case(train=True)
def a_tensor_with_a_grad_fn(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    print(y, y.sum(), {"mean": y.mean()}, [y.max()])
    y.mul_(2)
    print(y)
    return x * y


@case(train=True)
def parameters(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    print(HOOKED.bias, HOOKED.bias * 2)
    logger.info("bias %s", HOOKED.bias)
    return y + 1


@case(train=True)
def a_formatted_loss(x: torch.Tensor) -> torch.Tensor:
    loss = (x * 2).sum()
    logger.info(f"loss {loss:.3f} or {loss}")
    logger.info("loss {:.2e} or {loss}".format(loss, loss=loss * 2))
    return loss * x


@case(train=True)
def a_converted_loss(x: torch.Tensor) -> torch.Tensor:
    loss = (x * 2).sum()
    logger.info("loss %.3f or %d, %5.1f%%", loss, loss, 100 * loss)
    print("loss %g" % loss, "%s: %8.3f" % ("loss", loss))
    return loss * x


@case(train=True)
def a_loss_shown_as_a_tensor(x: torch.Tensor) -> torch.Tensor:
    loss = (x * 2).sum()
    logger.info(f"loss {loss!r} {loss!s:>60}")
    logger.info("loss %s, %r, %.2f", loss, loss, loss)
    return loss * x


@case(train=True)
def a_formatted_loss_in_a_branch(x: torch.Tensor) -> torch.Tensor:
    loss = (x * 2).sum()
    if loss > 1:
        logger.info(f"loss {loss:.3f}")
        logger.info("loss %.3f", loss)
        print(loss)
    return loss * x


# --- declined on the traced values -----------------------------------------------------------------------------------


@case(graphs=2, fullgraph=False, refusals=("GM101-T02",))
def a_key_that_requires_a_gradient(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    print(len({HOOKED.bias: 1}), {HOOKED.bias: 1})
    return y * 2


@case(graphs=2, fullgraph=False, train=True, refusals=("GM101-T02",))
def a_tensor_that_comes_in(x: torch.Tensor) -> torch.Tensor:
    """It may come from another function in the next call."""
    y = x * 2
    print(x)
    return x * y


@case(graphs=1, fullgraph=False, refusals=("GM101-T03",))
def a_tensor_under_vmap(x: torch.Tensor) -> torch.Tensor:
    def body(row: torch.Tensor) -> torch.Tensor:
        print(row)
        return row + 1

    return torch.func.vmap(body)(x.expand(2, 3))


class Changing:
    def __init__(self) -> None:
        self.count = 0

    def __repr__(self) -> str:
        return f"count {self.count}"


@case(graphs=2, fullgraph=False, refusals=("GM101-T04",))
def an_object_that_changes(x: torch.Tensor) -> torch.Tensor:
    changing = CHANGING
    changing.count = 1
    y = x + 1
    print(changing)
    changing.count = 2
    return y + 1


CHANGING = Changing()


@case(graphs=0, fullgraph=False, perhaps=("GM101-T05",))  # torch 2.15 traces the context manager, older ones do not
def under_redirect_stdout(x: torch.Tensor) -> torch.Tensor:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print("elsewhere")
    return x + len(text.getvalue())


@case(graphs=0, fullgraph=False, refusals=("GM101-T05",))
def under_catch_warnings(x: torch.Tensor) -> torch.Tensor:
    with warnings.catch_warnings():
        warn_in_a_helper()
    return x + 1


def warn_in_a_helper() -> None:
    warnings.warn("inside")


@case(graphs=2, fullgraph=False, refusals=("GM101-T04",))
def a_warning_object(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    warnings.warn(FutureWarning("an instance"))
    return y + 1


@case(graphs=0, fullgraph=False, refusals=("GM101-T18",))
def an_adapter_with_a_state_of_its_own(x: torch.Tensor) -> torch.Tensor:
    for layer in range(2):
        adapter.extra["layer"] = layer
        x = x + 1
        adapter.warning("adapted")
    return x


@case(graphs=2, fullgraph=False, refusals=("GM101-T04",))
def a_list_that_holds_itself(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    loop = [1]
    loop.append(loop)
    print(loop)
    return y + 1


@case(graphs=2, fullgraph=False, refusals=("GM101-T04",))
def a_list_too_long_to_copy(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    print(LONG)
    return y + 1


LONG = list(range(100))


class Level(enum.Enum):
    HIGH = [1]


@case(graphs=2, fullgraph=False, refusals=("GM101-T04",))
def an_enum_with_a_list_inside(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    print(Level.HIGH)
    return y + 1


@case(graphs=2, fullgraph=False, refusals=("GM101-T04",))
def an_object_as_a_key(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    print({CHANGING: 1})
    return y + 1


@case(graphs=2, fullgraph=False, refusals=("GM101-T05",))
def a_stream_put_in_place_by_hand(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    stream, sys.stdout = sys.stdout, sys.stderr
    print("on stderr")
    sys.stdout = stream
    return y + 1


@case(graphs=1, fullgraph=False, refusals=("GM101-T10",))
def a_handler_in_the_caller(x: torch.Tensor) -> torch.Tensor:
    try:
        y = warn_badly(x)
    except TypeError:
        y = x * 10
    return y + 1


@case(graphs=1, fullgraph=False, refusals=("GM101-T10",))
def a_handler_in_an_inlined_caller(x: torch.Tensor) -> torch.Tensor:
    return handle(x) + 1


def handle(x: torch.Tensor) -> torch.Tensor:
    try:
        return warn_badly(x)
    except TypeError:
        return x * 10


def warn_badly(x: torch.Tensor) -> torch.Tensor:
    print("%d" % str(x.dim()))
    return x + 1


@case()
def a_finally_and_a_with_in_the_caller(x: torch.Tensor) -> torch.Tensor:
    try:
        with torch.no_grad():
            y = helper(x, "inside")
    finally:
        z = x + 1
    return y + z


@case()
def a_stream_of_a_local_import(x: torch.Tensor) -> torch.Tensor:
    import sys as system

    print("to stderr", file=system.stderr)
    return x + 1


@case(graphs=1, fullgraph=False)
def an_argument_that_changes_the_text_before_it(x: torch.Tensor) -> torch.Tensor:
    seen: list[int] = []
    y = x + 1
    print(f"{seen} {seen.append(1)}")
    return y


class Meter:
    """Not a logger, though its method is called like one's."""

    def __init__(self) -> None:
        self.total = 0

    def info(self, amount: int) -> None:
        self.total += amount


@case(refusals=("GM101-T01",))
def not_a_logger(x: torch.Tensor) -> torch.Tensor:
    meter = Meter()
    meter.info(2)
    return x + meter.total


@case()
def print_is_something_else(x: torch.Tensor) -> torch.Tensor:
    total = []
    print = total.append
    print(3)
    builtins.print("the real one")
    return x + total[0]


def counts_prints(kept: list[str], x: torch.Tensor) -> torch.Tensor:
    """What `print` stands for adds to the list."""
    print("hi")
    return x + len(kept)

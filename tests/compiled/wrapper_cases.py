"""Effects that stand in wrappers: what gives arguments on, says which caller it shows, or is reached through a cache.

Imported twice, as they are and mended; ``EXPECT`` as in `defer_cases`.
"""

from __future__ import annotations

import functools
import logging
import sys
import warnings
from functools import partial
from typing import Any

import torch
from defer_cases import Expectation

logger = logging.getLogger("wrapper_cases")
quiet = logging.getLogger("wrapper_cases_quiet")
quiet.setLevel(logging.ERROR)

EXPECT: dict[str, Expectation] = {}
# Those where Dynamo without the hook shows another caller than eager does: they are compared with that.
AS_STOCK: set[str] = set()


def case(graphs: int = 1, fullgraph: bool = True, refusals: tuple[str, ...] = ()) -> Any:
    def register(function: Any) -> Any:
        EXPECT[function.__name__] = Expectation(graphs, fullgraph, refusals=frozenset(refusals))
        return function

    return register


def as_stock(function: Any) -> Any:
    AS_STOCK.add(function.__name__)
    return function


# --- arguments that are given on -------------------------------------------------------------------------------------


def warn(*args: Any, **kwargs: Any) -> None:
    warnings.warn(*args, **kwargs)


def say(*args: Any, **kwargs: Any) -> None:
    print("said", *args, **kwargs)


def info(text: str, *args: Any, **kwargs: Any) -> None:
    logger.info(text, *args, **kwargs)


def rank_zero_only(function: Any) -> Any:
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if rank_zero_only.rank == 0:
            return function(*args, **kwargs)
        return None

    return wrapped


rank_zero_only.rank = 0
rank_zero_warn = rank_zero_only(warn)
rank_zero_info = rank_zero_only(info)
rank_zero_deprecation = partial(rank_zero_warn, category=DeprecationWarning)


@case()
def arguments_given_on(x: torch.Tensor) -> torch.Tensor:
    warn("plain")
    warn("with a category", DeprecationWarning)
    warn("by name", category=FutureWarning)
    say(1, x.shape, sep="-")
    info("%d of %s", 1, x.dtype)
    return x + 1


@case()
def through_a_rank_zero_wrapper(x: torch.Tensor) -> torch.Tensor:
    rank_zero_warn("warned", UserWarning)
    rank_zero_info("number %d", x.dim())
    rank_zero_deprecation("deprecated")
    return x + 1


class Speaker:
    def log(self, *args: Any) -> None:
        print(*args)

    def log_to(self, *args: Any, **kwargs: Any) -> None:
        print(*args, **kwargs)


SPEAKER = Speaker()


@case(refusals=("GM101-T01",))  # `log` is no logger's method there
def a_print_through_a_method(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    SPEAKER.log("before", y)
    y.add_(1)
    SPEAKER.log_to("after", y, end="!\n")
    return y


@case(graphs=2, fullgraph=False, refusals=("GM101-T04",))
def a_stream_given_on(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    SPEAKER.log_to("to a stream", file=sys.stderr)
    return y + 1


@case()
def arguments_changed_before(x: torch.Tensor) -> torch.Tensor:
    changing(1, text="kept", level=logging.WARNING)
    return x + 1


def changing(*args: Any, **kwargs: Any) -> None:
    level = kwargs.pop("level")
    kwargs.setdefault("extra", {"seen": 1})
    text = kwargs.pop("text") + " %d"
    logger.log(level, text, *args, **kwargs)
    kwargs["extra"] = None


@case()
def a_name_of_its_own_twice(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    try_twice("twice")
    return y + 1


def try_twice(*args: Any) -> None:
    args = list(args)  # bound anew: no longer what Python makes of the arguments
    print(*args)


# --- the caller that is shown ----------------------------------------------------------------------------------------


def warn_of_caller(text: str) -> None:
    warnings.warn(text, stacklevel=2)


def warn_of_caller_by_place(text: str) -> None:
    warnings.warn(text, UserWarning, 2)


def info_of_caller(text: str, *args: Any, stacklevel: int = 2, **kwargs: Any) -> None:
    logger.info(text, *args, stacklevel=stacklevel, **kwargs)


@rank_zero_only
def warn_of_third(*args: Any, stacklevel: int = 3, **kwargs: Any) -> None:
    warnings.warn(*args, stacklevel=stacklevel, **kwargs)


def in_between(text: str) -> None:
    warn_of_caller(text)
    info_of_caller(
        text,
    )


@case()
def a_warning_that_shows_its_caller(x: torch.Tensor) -> torch.Tensor:
    warn_of_caller("here")
    warn_of_caller_by_place("and here")
    in_between("there")
    return x + 1


@case()
def through_wrappers_that_show_a_caller(x: torch.Tensor) -> torch.Tensor:
    warn_of_third("from here")
    warn_of_third("one further in", stacklevel=2)
    info_of_caller("%s", x.shape)
    partial(info_of_caller, stacklevel=1)("inside")
    return x + 1


@case()
def a_caller_outside_that_is_not_shown(x: torch.Tensor) -> torch.Tensor:
    quiet.warning("outside", stacklevel=2)
    return x + 1


@as_stock
@case(graphs=2, fullgraph=False, refusals=("GM101-T15",))
def a_caller_outside_of_the_trace(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    logger.warning("outside", stacklevel=2)
    return y + 1


@case()
def a_caller_behind_a_module_call(x: torch.Tensor) -> torch.Tensor:
    return WARNING(x + 1) + 1


class Warning_(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logger.warning("from torch", stacklevel=2)
        logger.warning("from there, too", stacklevel=3)
        logger.warning("from the caller", stacklevel=4)
        warnings.warn("from the caller", FutureWarning, stacklevel=4)
        return x * 2


WARNING = Warning_()


@case()
def a_caller_that_calls_hooks(x: torch.Tensor) -> torch.Tensor:
    return HOOKED(x) + 1


class Hooked(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logger.warning("from within hooks", stacklevel=2)
        return x * 2


def before(_module: torch.nn.Module, _given: Any) -> None:
    logger.warning("from a hook", stacklevel=2)


HOOKED = Hooked()
HOOKED.register_forward_pre_hook(before)


def warned(x: torch.Tensor, level: int) -> bool:
    logger.warning("level %d", level, stacklevel=level)
    return x.dim() == 1


@case(refusals=("GM101-T15", "GM102-T13"))
def callers_that_ask_data(x: torch.Tensor) -> torch.Tensor:
    if asks_right(x) and asks_left(x):
        x = x + 1
    return x + 1


def asks_right(x: torch.Tensor) -> bool:
    y = x + 1
    if x.sum() > 0 and warned(x, 3):
        y = y * 2
    return bool(y is not x)


def asks_left(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    if warned(x, 2) and warned(x, 3) and x.sum() > 0:
        y = y * 2
    return y.dim() > 0 and not (warned(x, 2) and x.sum() < 0)


def a_level_by_a_size(x: torch.Tensor) -> torch.Tensor:
    logger.warning("by a size", stacklevel=x.shape[0])
    return x + 1


@as_stock
@case(graphs=2, fullgraph=False, refusals=("GM101-T15",))
def a_caller_at_another_line_in_eager(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    if torch.compiler.is_compiling():
        info_of_caller("compiling")
    return y + 1


@as_stock
@case(graphs=3, fullgraph=False, refusals=("GM101-T15",))
def a_caller_behind_a_call_of_its_own(x: torch.Tensor) -> torch.Tensor:
    return CALLED(x + 1) + 1


class Called(torch.nn.Module):
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return super().__call__(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logger.warning("from a call", stacklevel=4)
        return x * 2


CALLED = Called()


@as_stock
@case(graphs=0, fullgraph=False, refusals=("GM101-T15",))
def a_caller_that_is_a_generator(x: torch.Tensor) -> torch.Tensor:
    for row in rows(x):
        x = x + row
    return x


def rows(x: torch.Tensor) -> Any:
    logger.warning("from a generator", stacklevel=2)
    yield x


@case()
def a_caller_that_is_a_decorator_of_torch(x: torch.Tensor) -> torch.Tensor:
    return without_gradient(x) + 1


@torch.no_grad()
def without_gradient(x: torch.Tensor) -> torch.Tensor:
    logger.warning("from a decorator", stacklevel=2)
    return x + 1


@case(graphs=2, fullgraph=False, refusals=("GM101-T16",))
def a_stack_given_on(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    info("with a stack", stack_info=True)
    return y + 1


# --- partial ---------------------------------------------------------------------------------------------------------

deprecated = partial(warnings.warn, category=DeprecationWarning)
of_caller = partial(warnings.warn, category=UserWarning, stacklevel=2)
announce = functools.partial(print, "announced:", sep=" ")
tell = partial(logger.info, "told %s")


def deprecate(text: str) -> None:
    of_caller(text)


@case()
def a_partial_of_a_function(x: torch.Tensor) -> torch.Tensor:
    deprecated("old")
    announce(x.shape, end=".\n")
    tell("it")
    deprecate("shows this line")
    local = partial(warnings.warn, category=FutureWarning)
    local("soon")
    return x + 1


@as_stock
@case(graphs=2, fullgraph=False, refusals=("GM101-T15",))
def a_partial_that_shows_what_is_outside(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    of_caller("outside")
    return y + 1


# --- behind caches and in handlers -----------------------------------------------------------------------------------


@functools.lru_cache
def detect(name: str) -> bool:
    quiet.warning("detected %s", name)
    return True


@functools.lru_cache
def detect_aloud() -> bool:
    logger.info("detected")
    return True


@functools.lru_cache
def detect_by_default(name: str = "torch") -> bool:
    logger.info("detected %s", name)
    return True


detect_by_default("numpy")


@case(graphs=2, fullgraph=False, refusals=("GM101-T17",))
def behind_a_cache_that_holds_others(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    detect_by_default()
    return y + 1


@functools.cache
def is_detected() -> bool:
    try:
        say("detected", "before")
        return detect_in_a_helper("torch")
    except ValueError:
        return False


def detect_in_a_helper(name: str) -> bool:
    logger.warning(f"detected {name}")
    warn("detected", DeprecationWarning)
    return True


is_detected()


@case(graphs=2, fullgraph=False, refusals=("GM101-T17",))
def quietly_behind_a_cache(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    return y + 1 if detect("torch") else y


@case()
def behind_a_cache_that_is_full(x: torch.Tensor) -> torch.Tensor:
    return x + 1 if is_detected() else x


@case()
def quietly_in_a_try(x: torch.Tensor) -> torch.Tensor:
    try:
        quiet.info("quietly")
        quiet_in_a_helper(x)
    except ValueError:
        return x
    return x + 1


def quiet_in_a_helper(x: torch.Tensor) -> None:
    quiet.warning("of %s", x.shape)


def a_text_that_fails_in_a_try(x: torch.Tensor) -> torch.Tensor:
    try:
        quiet.info(f"{x.dim()} {'two':d}")
    except ValueError:
        return x + 2
    return x + 1


def a_text_that_fails_in_a_try_of_the_caller(x: torch.Tensor) -> torch.Tensor:
    try:
        quiet_and_wrong(x)
    except ValueError:
        return x + 2
    return x + 1


def quiet_and_wrong(x: torch.Tensor) -> None:
    quiet.debug("{} {:d}".format("one", str(x.dim())))


@case(graphs=2, fullgraph=False, refusals=("GM101-T10",))
def aloud_in_a_try(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    aloud_with_a_handler()
    return y + 1


def aloud_with_a_handler() -> None:
    try:
        logger.info("aloud")
    except ValueError:
        logger.info("caught")


@case(graphs=2, fullgraph=False, refusals=("GM101-T17",))
def aloud_behind_a_cache(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    detect_aloud()
    return y + 1

"""Records and prints: loggers of one's own, texts that nobody reads, and who is seen to call."""

from __future__ import annotations

import functools
import logging
import sys
from typing import Any

import torch
from programs import TAKEN, of, of_each

logger = logging.getLogger("logging_cases")


class LooksAtFrames(logging.Logger):
    def warning(self, message, *values, **options):
        super().warning(message, *values, stacklevel=3, **options)


class SaysMore(logging.Logger):
    def notice(self, message):
        self.warning("notice: " + sys._getframe(1).f_code.co_name + message)


def warns_by(x):
    helped(x)
    return x * 2


def helped(x):
    own_logger.error("plain %d", x.dim())
    own_logger.warning("deep")


def _own_logger(kind: Any, C: Any) -> list[Any]:
    global own_logger
    own_logger, kept, compiled = kind("own"), [], C(warns_by)

    class Keeping(logging.Handler):
        def emit(self, record):
            kept.append((record.lineno - warns_by.__code__.co_firstlineno, record.funcName, record.getMessage()))

    own_logger.addHandler(Keeping())
    return [compiled(of(value)) for value in TAKEN], kept


case_logger_that_looks_at_frames = functools.partial(_own_logger, LooksAtFrames)
case_logger_that_says_more = functools.partial(_own_logger, SaysMore)


def drops(x):
    logger.warning("dropped")
    return torch.nn.functional.dropout(x, 0.5, True)


def case_draws_on_the_meta_device(C):
    return C(drops)(torch.ones(2, device="meta")).shape


# --- texts that nobody reads, or that are read of the object ----------------------------------------------------------


def formats_in_vain(x):
    logger.debug(f"{x:.2f}")
    return x * 2


def formats_a_number_in_vain(x):
    logger.debug(f"{x.sum():d}")
    return x * 2


def formats_too_little(x):
    logger.debug("{} {}".format(x))  # noqa: F524
    return x * 2


def inserts_too_little(x):
    logger.debug("%d %s" % (1,))  # noqa: F507
    return x * 2


def says_nothing_at_all(x):
    logger.debug()
    return x * 2


def formats_well(x):
    logger.debug(f"{x.sum():.2f} {x.shape} {x.dtype} {[x, 'a']} {x.sum()!r:>30}")
    return x * 2


def reads_fields(x):
    y = x.clone()
    y.add_(1)
    logger.warning("{0._version} {0.shape} {1[0]}".format(y, [1]))
    return y


TEXTS = (
    *(formats_in_vain, formats_a_number_in_vain, formats_too_little, inserts_too_little, says_nothing_at_all),
    *(formats_well, reads_fields),
)


def case_texts(C):
    return of_each(C, TEXTS)


@functools.lru_cache(None)
def warning_once(self, *given):
    self.warning(*given)


GIVEN = of(1.0)


def tells_once(x):
    logger.warning_once("given %s", GIVEN)
    logger.warning_once("pair %s", (1, GIVEN))
    return x * 2


def case_told_once(C):
    warning_once.cache_clear()
    logging.Logger.warning_once = warning_once  # as transformers does
    try:
        return of_each(C, [tells_once])
    finally:
        del logging.Logger.warning_once


# --- who is seen to call, and what becomes of a record ----------------------------------------------------------------


class Seen(logging.Handler):
    prefix = "a"

    def __init__(self):
        super().__init__()
        self.seen = []

    def emit(self, record):
        self.seen.append([self.prefix, record.getMessage(), record.lineno])


class Says:
    def say(self, text):
        observed.warning(text, stacklevel=2)


says, observed = Says(), logging.getLogger("logging_cases.observed")
observed.propagate = False


def ends_in_one_call(x):
    if x.sum() > 0:
        y = x * 2
        says.say("one")
    else:
        y = x * 3
        says.say("one")
    return y


def raises_the_level(x):
    observed.warning("one")
    observed.handlers[0].level = 50
    observed.warning("two")
    return x * 2


def changes_the_prefix(x):
    observed.warning("one")
    observed.handlers[0].prefix = "b"
    return x * 2


def is_quiet_later(x):
    if x.sum() > 0:
        observed.warning("positive")
        x = x * 2
    observed.disabled = True
    return x


def case_records(C):
    found = []
    for function in (ends_in_one_call, raises_the_level, changes_the_prefix, is_quiet_later):
        compiled, handler = C(function), Seen()
        for value in TAKEN:
            observed.handlers, observed.disabled = [handler], False
            handler.level, handler.prefix = 0, "a"
            found.append(compiled(of(value)))
        found.append(handler.seen)
    observed.handlers, observed.disabled = [], False
    return found

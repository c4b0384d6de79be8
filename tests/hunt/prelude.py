"""What every random program finds in its module."""

import collections
import contextlib
import itertools
import logging
import math
import mmap
import random
import threading
import warnings
from dataclasses import dataclass

import numpy as np
import torch

logger = logging.getLogger("random_programs")
angry = logging.getLogger("random_programs.angry")
silent = logging.getLogger("random_programs.silent")
silent.setLevel(logging.ERROR)
TALLY = 0
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    READONLY = torch.frombuffer(mmap.mmap(-1, 16, prot=mmap.PROT_READ), dtype=torch.float32)  # a store ends the process


class AngryHandler(logging.Handler):
    """Raises what `logging` does not catch."""

    def emit(self, record):
        if record.levelno >= logging.ERROR:
            raise ValueError(record.getMessage())


angry.handlers[:] = [AngryHandler()]


@dataclass(frozen=True)
class FrozenError(Exception):
    message: str


class Meter:
    """To read it has effects."""

    def __init__(self):
        self.reads = 0
        self.seen = []

    @property
    def scale(self):
        self.reads += 1
        return 2.0

    @property
    def listed(self):
        self.seen.append("s")
        return 2.0

    @property
    def drawn(self):
        return random.randint(1, 3)

    @property
    def said(self):
        logger.warning("log read")
        return 2

    @property
    def counted(self):
        global TALLY
        TALLY += 1
        return 2

    @property
    def kept(self):
        if "_kept" not in self.__dict__:
            self._kept = 2
        return self._kept

    def __len__(self):
        self.reads += 1
        return 3

    def __getitem__(self, key):
        self.seen.append(key)
        return 2


class Private:
    """Its names are private, and it has an answer for any other."""

    def __init__(self):
        self.__gain = 3
        self.__last = None

    def __getattr__(self, name):
        if name.startswith(("_Private", "__")):
            raise AttributeError(name)
        return 100

    def gained(self, t):
        if t.sum() > 0:
            t = t * self.__gain
        return t

    def stored(self, t):
        if t.sum() > 0:
            self.__last = t * 2
        return t if self.__last is None else self.__last

    def counted(self, t):
        if t.abs().max() > 50:
            raise ValueError(f"private {self.__gain}")
        self.__gain += 1
        return t * self.__gain


class Wrapped:
    """Hands on what it has not."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        if name == "inner" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)


class Backend:
    """Has methods with the names of torch's, which do other things."""

    calls = 0

    def reshape(self, t, like):
        return t * 2 + like.sum()

    def split(self, t, parts):
        return [t + parts, t]

    def zeros(self, t):
        self.calls += 1
        return t - 1

    def arange(self, t):
        return t + 1

    def item(self):
        self.calls += 1
        return 3

    def any(self):
        self.calls += 1
        return self.calls % 2 == 0

    def all(self):
        return True

    def tolist(self):
        self.calls += 1
        return [1, 2]

    def sum(self):
        self.calls += 1
        return self.calls


class AbsentError(AttributeError):
    pass


class AtAnEnd(StopIteration):
    pass


class Fails:
    """Raises what Python itself catches."""

    def __init__(self, t):
        self.t = t

    @property
    def scale(self):
        if self.t.sum() > 0:
            raise AbsentError("no scale")
        return 2.0

    def __iter__(self):
        return self

    def __next__(self):
        if self.t.sum() > 0:
            raise AtAnEnd("at an end")
        self.t = self.t + 1
        return 2.0

    def __getitem__(self, index):
        if (self.t + index).sum() > 3:
            raise IndexError(index)
        return self.t + index


class Doubling(torch.overrides.TorchFunctionMode):
    """Sees each call of torch, and changes what some give."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        return found * 2 if function in (torch.where, torch.abs) else found


class GuardError(Exception):
    def __init__(self, message, code=7):
        super().__init__(message, code)
        self.code = code

    def __str__(self):
        return f"{self.args[0]} [{self.code}]"


def positive(t):
    return t.sum() > 0


def within(t, n):
    if n > 2:
        return False
    return (t.abs() < n + 1).all()


def note(owner, t):
    owner.s = owner.s + 1
    owner.last, owner.k = t, owner.k + 1
    return owner.k


def first_of(table):
    return torch.utils._pytree.tree_leaves(table)[0]


def double(t):
    return t * 2


def pick(t):
    if t.sum() > 0:
        return t * 2
    return t - 1


def clamped(t):
    if t.is_floating_point() and (torch.isinf(t).any() or torch.isnan(t).any()):
        t = torch.clamp(t, min=-100, max=100)
    return t


def check(t, limit=50):
    if t.abs().max() > limit:
        raise ValueError(f"over {limit}: {t.abs().max()}")


def checked(t):
    check(t)
    return t + 1


def noisy(t):
    if positive(t):
        logger.warning("log positive")
        return t
    logger.warning("log negative %d", t.dim())
    return t.abs()


def made_told(t):
    return torch.zeros_like(t).requires_grad_()


def told(t):
    return getattr(t, "requires_grad")  # noqa: B009  by another spelling


class Logged(torch.autograd.Function):
    """A backward pass that can be heard, and draws."""

    @staticmethod
    def forward(ctx, t):
        return t * 2

    @staticmethod
    def backward(ctx, gradient):
        logger.info("log backward")
        return gradient * 2 + torch.rand([])


class Drawing(torch.autograd.Function):
    """A forward pass that draws what nothing uses, and looks up what may not be there."""

    @staticmethod
    def forward(ctx, t, places):
        if torch.rand(2).sum() > 3 or t[places].sum() > 3 or t.dim() > 0:
            t = t * 2
        return t * 3

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 6, None


class DrawingBack(torch.autograd.Function):
    """Its backward pass draws for nothing."""

    @staticmethod
    def forward(ctx, t):
        return t * 2

    @staticmethod
    def backward(ctx, g):
        g = g * torch.rand(1).to(g.dtype)
        torch.rand(3)
        return g


def drawing(t):
    silent.info("log %s", torch.rand(2))
    return t * 2


class Swallowing:
    """Catches whatever is raised."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return True


def asserted(t):
    assert len(t.shape) > 5 or not (t > 1).any()
    return t + 1


def labelled(t):
    t.label = "label"
    return t


def in_a_thread(work):
    """What `work` gives or raises in a thread of its own."""
    given = []

    def run():
        try:
            given.append((work(), None))
        except Exception as error:
            given.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    value, error = given[0]
    if error is not None:
        raise error
    return value

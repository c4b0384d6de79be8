"""Programs by which attacks on the mended code once could be told from eager: each takes `C`, which compiles or does not.

What a case gives is compared with what it gives uncompiled and as it was written.
"""

from __future__ import annotations

import functools
import itertools
import logging
import math
import random
import sys
from itertools import groupby
from typing import Any

import numpy as np
import torch
import torch.utils.checkpoint

logger = logging.getLogger("attack_cases")
silent = logging.getLogger("attack_cases.silent")
silent.setLevel(logging.ERROR)
TAKEN = (-1.0, 1.0, 2.0)


def of(value: float) -> torch.Tensor:
    return torch.ones(3) * value


def rows(count: int) -> torch.Tensor:
    x = -torch.ones(6, 3)
    x[:count] = torch.arange(1.0, count * 3 + 1).reshape(count, 3)
    return x


class Thing:
    """Any object: what it is given, it has."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


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


case_shadowed_names = functools.partial(_for_each_value, (groups, really_groups, counts_nothing))


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


def selects(a, b, t):
    if t.sum() > 0:
        y = a
    else:
        y = b
    return y


def selects_a_stride(x, t):
    if t.sum() > 0:
        y = x[::2]
    else:
        y = x[1::2]
    return y, y.stride(), y.is_contiguous()


def case_selects_strides(C):
    long, compiled = torch.arange(6.0), C(selects)
    pairs = [(long[::2], long[1::2]), (long[:1].expand(3, 2), long[1:2].expand(3, 2))]
    found = [compiled(*pair, of(value)).stride() for pair in pairs for value in TAKEN]
    return found + [C(selects_a_stride)(long, of(value))[1:] for value in TAKEN]


def case_selects_conjugates(C):
    a, b, compiled = torch.tensor([1 + 2j]).conj(), torch.tensor([3 + 2j]).conj(), C(selects)
    return [compiled(a, b, of(value)).is_conj() for value in TAKEN]


def case_selects_inference_tensors(C):
    with torch.inference_mode():
        a, b = torch.ones(3), torch.zeros(3)
    compiled = C(selects)
    return [compiled(a, b, of(value)).is_inference() for value in TAKEN]


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


def measures_a_batch(x):
    n = (x[:, 0] > 0).sum().item()
    return torch.vmap(lambda row: row[:n] * 2)(x.t()).shape


def asks_for_strides(x):
    return x[x[:, 0] > 0].t().contiguous().stride()


def asks_for_strides_of_what_is_expanded(x):
    n = int((x[:, 0] > 0).sum())
    return strides_of(x[:, :1].expand(6, n))


def strides_of(x):
    return x.stride()


def _for_each_count(function: Any, C: Any) -> list[Any]:
    compiled = C(function)
    return [compiled(rows(count)) for count in (3, 1, 0, 2, 6)]


case_measures_a_batch = functools.partial(_for_each_count, measures_a_batch)
case_asks_for_strides = functools.partial(_for_each_count, asks_for_strides)
case_asks_for_strides_of_what_is_expanded = functools.partial(_for_each_count, asks_for_strides_of_what_is_expanded)


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


# --- the modes after a graph that failed ------------------------------------------------------------------------------


def switches_after_a_guard(x, i):
    torch.set_grad_enabled(False)
    if (i > 100).any():
        raise ValueError("i")
    torch.set_grad_enabled(True)
    return x + i


def switches_after_a_guard_in_a_context(x, i):
    with torch.no_grad():
        if (i > 100).any():
            raise ValueError("i")
    return x + i


@torch.no_grad()
def guarded_without_gradients(x, i):
    if (i > 100).any():
        raise ValueError("i")
    return x[i]


@torch.inference_mode()
def guarded_in_inference_mode(x, i):
    if (i > 100).any():
        raise ValueError("i")
    return x[i]


def _modes_after(function: Any, C: Any) -> list[Any]:
    compiled, found = C(function), []
    for index in (1, 101, 7, 1):
        try:
            compiled(torch.arange(3.0), torch.tensor([index]))
        except (ValueError, IndexError) as error:
            found.append(type(error))
        found.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
        torch.set_grad_enabled(True)
    return found


case_guarded_without_gradients = functools.partial(_modes_after, guarded_without_gradients)
case_guarded_in_inference_mode = functools.partial(_modes_after, guarded_in_inference_mode)
case_switches_after_a_guard = functools.partial(_modes_after, switches_after_a_guard)
case_switches_after_a_guard_in_a_context = functools.partial(_modes_after, switches_after_a_guard_in_a_context)


def counts_without_gradients(x, w, other):
    h = w * 2
    with torch.no_grad():
        z = x.nonzero() + other
    return h * z.sum()


def counts_in_autocast(x, w, other):
    with torch.autocast("cpu", torch.bfloat16):
        z = x.nonzero() + other
    return torch.mm(w[None], w[:, None]) * z.sum()


def counts_in_inference_mode(x, w, other):
    with torch.inference_mode():
        z = x.nonzero() + other
    return (w.detach() * 2) * z.clone().sum()


def case_counts_in_modes(C):
    found, other = [], torch.ones(3, 1, dtype=torch.long)
    for function in (counts_without_gradients, counts_in_autocast, counts_in_inference_mode):
        compiled = C(function)
        for x in ([1.0, 1.0, 1.0], [0.0, 0.0, 5.0]):
            given = compiled(torch.tensor(x), torch.ones(2, requires_grad=True), other)
            found.append((given.dtype, given.requires_grad, given.is_inference(), given, torch.is_grad_enabled()))
    return found


# --- guards and effects -----------------------------------------------------------------------------------------------


def reads_twice(x):
    return torch.ge(input=x, other=1).item(), torch.ge(input=x, other=10).item()


def case_guards_of_values_differ_by_keyword(C):
    compiled = C(reads_twice)
    return [compiled(torch.tensor(value)) for value in (5, 20, 0)]


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


def allocates(x, n: int):
    if x.sum() > 0:
        y = x + torch.zeros(n).sum()
    else:
        y = x
    return y


def case_allocates_on_a_side_that_is_not_taken(C):
    compiled = C(allocates)
    return [compiled(of(-1.0), 10**13), compiled(of(1.0), 10), compiled(of(-1.0), 10**12)]


def drops(x):
    logger.warning("dropped")
    return torch.nn.functional.dropout(x, 0.5, True)


def case_draws_on_the_meta_device(C):
    return C(drops)(torch.ones(2, device="meta")).shape


def counts_prints(kept, x):
    print("hi")
    return x + len(kept)


# --- sizes that the data decides --------------------------------------------------------------------------------------


def squeezes_by_an_operator(x):
    return torch.ops.aten.squeeze.dim(x[x[:, 0] > 0], 0).dim()


def squeezes_a_copy(x):
    return torch.squeeze_copy(x[x[:, 0] > 0], 0).dim()


def squeezes_as_numpy(x):
    return np.squeeze(x[x[:, 0] > 0].numpy()).ndim


def squeezes_in_a_body(x):
    return torch.utils.checkpoint.checkpoint(lambda a: a.squeeze(0) * 2, x[x[:, 0] > 0], use_reentrant=False).dim()


class Squeeze(torch.autograd.Function):
    @staticmethod
    def forward(_, a):
        return a.squeeze(0) * 1

    @staticmethod
    def backward(_, gradient):
        return gradient


def squeezes_in_a_function(x):
    return Squeeze.apply(x[x[:, 0] > 0]).dim()


def writes_to_what_is_contiguous(x):
    k = (x[:, 0] > 0).sum().item()
    y = x[:, :k].contiguous()
    y.add_(10)
    return x[0, 0].item()


def writes_to_what_is_reshaped(x):
    r = x[x[:, 0] > 0]
    c = r.t().reshape(-1)
    c.add_(10)
    return r.tolist()


def gives_what_is_contiguous(x):
    k = (x[:, 0] > 0).sum().item()
    return x[:, :k].contiguous()


def case_sizes(C):
    found = []
    for function in (
        *(squeezes_by_an_operator, squeezes_a_copy, squeezes_as_numpy, squeezes_in_a_body, squeezes_in_a_function),
        *(writes_to_what_is_contiguous, writes_to_what_is_reshaped, gives_what_is_contiguous),
    ):
        compiled = C(function)
        for count in (3, 1, 2):
            x = rows(count)
            given = compiled(x)
            if isinstance(given, torch.Tensor):
                given.add_(1)
            found.append((given, x))
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


# --- groups: an iterator that finds out about a group when it is asked for it ----------------------------------------


def groups_that_are_kept(x):
    return [(k, list(g)) for k, g in [(k, g) for k, g in groupby(x.tolist(), lambda v: v)]]


def groups_that_are_used_up(x):
    grouped = groupby(x.tolist(), lambda v: v)
    return [k for k, _ in grouped], [k for k, _ in grouped]


def groups_until_one(x):
    seen = []
    for key, group in groupby(x.tolist(), lambda v: seen.append(v) or v):
        group = list(group)  # noqa: PLW2901
        if key == 1:
            break
    return seen


def groups_by_a_state(x):
    state, found = [0], []
    for key, group in groupby(x.tolist(), lambda v: v + state[0]):
        group = list(group)  # noqa: PLW2901
        state[0] += 10
        found.append((key, group))
    return found


def groups_read_a_step_later(x):
    last, found = [], []
    for _, group in groupby(x.tolist(), lambda v: v):
        found.append(list(last))
        last = group
    return found


def groups_read_after_the_loop(x):
    for key, group in groupby(x.tolist(), lambda v: v):
        if key == 2:
            continue
        group = list(group)  # noqa: PLW2901
    return list(group)


def groups_of_pairs(x):
    found = []
    for key, group in itertools.groupby(enumerate(x.tolist()), lambda pair: pair[1]):
        if key == 9:
            continue
        group = list(group)  # noqa: PLW2901
        found.append((key, group[0][0], group[-1][0] + 1))
    return found


def case_groups(C):
    return [
        C(function)(torch.tensor([1, 1, 2]))
        for function in (
            *(groups_that_are_kept, groups_that_are_used_up, groups_until_one, groups_by_a_state),
            *(groups_read_a_step_later, groups_read_after_the_loop, groups_of_pairs),
        )
    ]


# --- draws whose range is not known -----------------------------------------------------------------------------------


def draws_up_to_no_number(x):
    if random.uniform(0.5, math.nan) < 1:
        x = x + 100
    return x


def draws_beyond_all_numbers(x):
    if random.uniform(-1e308, 1e308) <= 1e308:
        x = x + 100
    return x


def draws_below_a_size(x):
    v = torch.randint(1, x.shape[0], (1,))
    if v >= 1:
        return x[v], x + 1
    return x - 1, x


def draws_a_number_below_a_size(x):
    x.add_(1)
    v = torch.randint(1, x.shape[0], ()).item()
    if v >= 1:
        return x + v
    return x - 100


def case_draws(C):
    found = []
    for function in (draws_up_to_no_number, draws_beyond_all_numbers, draws_below_a_size, draws_a_number_below_a_size):
        compiled = C(function)
        for size in (9, 7, 5):
            random.seed(1)
            torch.manual_seed(9)
            found.append(compiled(torch.arange(float(size))))
    return found


# --- what torch takes for a number, and for a condition ---------------------------------------------------------------


def counts_up_to(t, x):
    return torch.arange(t)


def fills_with(t, x):
    return torch.full_like(x, t), x.new_full((2,), t)


def spaces(t, x):
    return torch.linspace(0, 1, t)


def views_as(t, x):
    return x.view(t, -1)


def checks(t, x):
    torch._check(t > 1, lambda: "too small")
    return x + 1


def checks_a_name(t, x):
    holds = t > 1
    torch._check(holds)
    return x + 1


def checks_a_number(t, x):
    torch._check(t.item())
    return x + 1


def checks_two(t, x):
    torch._check((t > 1).item() and not (t > 9).any(), lambda: "out of bounds")
    return x + 1


def case_numbers(C):
    found = []
    for function in (counts_up_to, fills_with, spaces, views_as, checks, checks_a_name, checks_a_number, checks_two):
        for number in (torch.tensor(2), torch.tensor([2]), torch.tensor([[2]]), torch.tensor(True), torch.tensor(2.0)):
            torch._dynamo.reset()
            try:
                found.append(C(function)(number, torch.ones(4)))
            except (TypeError, RuntimeError) as error:
                found.append(f"{type(error).__name__} {error}")
    return found


# --- a size of zero, of which a kernel will have nothing --------------------------------------------------------------


def resizes(k, x):
    return torch.nn.functional.interpolate(x[: int(k.max())].t().unsqueeze(0), scale_factor=2.0)


def case_resizes_nothing(C):
    compiled, found = C(resizes), []
    for count in (3, 2, 0, 1):
        try:
            found.append(compiled(torch.tensor([0, count]), torch.arange(24.0).reshape(6, 4)))
        except RuntimeError as error:  # noqa: PERF203
            found.append(type(error).__name__)
    return found


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
    _for_each_value,
    (
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
    _for_each_value,
    (
        *(asks_behind_a_conversion, asks_behind_what_is_contiguous, asks_for_a_base, asks_for_a_hash),
        asks_for_an_address,
    ),
)


# --- arithmetic on sizes that fails in Python -------------------------------------------------------------------------


def divides_by_one_less(y):
    return y.sum(0) * (1.0 / (len(y) - 1))


def takes_a_root(y):
    try:
        scale = len(y) ** -0.5
    except ZeroDivisionError:
        scale = 1.0
    return y.sum(0) * scale


def takes_a_root_of_one_less(y):
    return y.sum(0) * (len(y) - 1) ** 0.5


def takes_a_square_root(y):
    return y.sum(0) * math.sqrt(len(y) - 1)


def takes_a_logarithm(y):
    return y.sum(0) * math.log2(len(y))


def divides_whole_numbers(y):
    return y.sum(0) * (7 // len(y) + 7 % len(y))


def divides_in_vain(y):
    try:
        mean = 10 // len(y)
    except ZeroDivisionError:
        return y.sum(0) * 0
    return y.sum(0) + 2, mean > 100 and mean


def divides_for_nothing(y):
    mean = 10 / len(y)  # noqa: F841
    return y.sum(0) + 2


def halves_and_squares(y):
    n = len(y)
    return y.sum(0) * (n // 2 + n**2 + n % 3 + n / 4)


SIZED = (
    *(divides_by_one_less, takes_a_root, takes_a_root_of_one_less, takes_a_square_root, takes_a_logarithm),
    *(divides_whole_numbers, divides_in_vain, divides_for_nothing, halves_and_squares),
)


def of_selected(function):
    def called(x):
        return function(x[x[:, 0] > 0])

    return called


def case_arithmetic_on_sizes(C):
    found = []
    for function in SIZED:
        compiled = C(of_selected(function))
        for count in (3, 2, 0, 1, 4):
            try:
                found.append(compiled(rows(count)))
            except (ZeroDivisionError, ValueError) as error:  # noqa: PERF203
                found.append(type(error).__name__)
    return found


# --- function transforms, whose tensors have no memory of their own, and in which nothing can be asserted -------------


def squares(x):
    return (x * x).sum()


def after_a_gradient(x):
    return what_follows(torch.func.grad(squares)(x), x)


def after_a_gradient_of_each_row(x):
    return what_follows(torch.vmap(torch.func.grad(squares))(x), x)


def after_a_jacobian(x):
    return what_follows(torch.func.jacrev(lambda row: row * row)(x[0]), x)


def after_a_tangent(x):
    return what_follows(torch.func.jvp(squares, (x,), (x,))[1], x)


def after_a_draw_for_each_row(x):
    return what_follows(torch.vmap(lambda row: row + torch.rand(()), randomness="different")(x), x)


def after_a_write_to_each_row(x):
    y = x * 2
    kept = y if x.sum() > 0 else y * 1
    torch.vmap(lambda row: row.add_(1))(y)
    return kept


def what_follows(y, x):
    y = y * 2 if y.sum() > 0 else y + 1
    positive = int((x > 0).sum())
    logger.warning("%s are positive", positive)
    if (x > 100).any():
        raise ValueError(f"too much: {x.max()}")
    return y, x[:positive]


TRANSFORMED = (
    *(after_a_gradient, after_a_gradient_of_each_row, after_a_jacobian, after_a_tangent),
    *(after_a_draw_for_each_row, after_a_write_to_each_row),
)


def case_function_transforms(C):
    found = []
    for function in TRANSFORMED:
        compiled = C(function)
        for x in (rows(2), -rows(6), 50 * rows(2)):
            try:
                found.append(compiled(x))
            except ValueError as error:  # noqa: PERF203
                found.append(str(error))
    return found


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


# --- numbers that Python draws, in texts ------------------------------------------------------------------------------


def says_a_draw(x):
    logger.warning("shift %d", random.randint(0, 5))
    return x * 2


def says_draws_in_containers(x):
    numbers = [random.randint(0, 9), {"a": random.random()}]
    logger.warning("numbers %s", numbers)
    numbers.append(1)
    return x * 2


def says_nothing_of_a_draw(x):
    logger.debug("off %s", random.randint(0, 9))
    return x * 2


def refuses_by_a_draw(x):
    number = random.randint(0, 2)
    if x.sum() > 0:
        raise ValueError(f"number {number}")
    return x + 1


def asserts_by_a_draw(x):
    number = random.uniform(0, 2)
    assert x.sum() <= 0, f"number {number}"
    return x + 1


def says_a_draw_in_a_side(x):
    number = random.randint(0, 2)
    if x.sum() > 0:
        logger.warning("number %d", number)
        x = x * 2
    return x


DRAWING = (
    *(says_a_draw, says_draws_in_containers, says_nothing_of_a_draw, refuses_by_a_draw, asserts_by_a_draw),
    says_a_draw_in_a_side,
)


def of_each(C, functions, values=TAKEN):
    """What each of the functions gives for each of the values, or raises."""
    found = []
    for function in functions:
        compiled = C(function)
        for value in values:
            try:
                found.append(compiled(of(value)))
            except Exception as error:  # noqa: PERF203
                found.append([type(error).__name__, str(error)])
    return found


def case_numbers_that_python_draws(C):
    random.seed(0)
    return [of_each(C, DRAWING), random.random()]


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


# --- modes that see each call of torch --------------------------------------------------------------------------------


class Hundredfold(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        return found * 100 if function in (torch.where, torch.Tensor.clone) else found


def chooses(x):
    if x.sum() > 0:
        y = x + 1
    else:
        y = x - 1
    return y


def chooses_in_a_mode(x):
    with Hundredfold():
        return chooses(x)


def chooses_behind_a_mode(x):
    y = x
    with Hundredfold():
        if x.sum() > 0:
            y = x + 1
    if y.sum() < 8:
        y = y - 5
    return y


def case_modes_of_the_program(C):
    found, compiled = of_each(C, [chooses_in_a_mode, chooses_behind_a_mode]), C(chooses)
    with Hundredfold():
        return [*found, compiled(of(1.0)), compiled(of(-1.0))]


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


says, observed = Says(), logging.getLogger("attack_cases.observed")
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


def case_other_layouts(C):
    def chooses_one(a, b, x):
        if x.sum() > 0:
            y = a
        else:
            y = b
        return y

    compiled, a, b = C(chooses_one), rows(2).to_mkldnn(), rows(3).to_mkldnn()
    return [compiled(a, b, of(value)).to_dense() for value in TAKEN]


def images(x, memory_format=torch.contiguous_format):
    return (torch.arange(24.0).view(2, 3, 2, 2) + x.sum()).to(memory_format=memory_format)


def case_conversions_that_copy(C):
    """`to` gives the tensor itself, another layout of it, or a copy."""

    def lays_out(x):
        y = images(x)
        if x.sum() > 0:
            y = y.to(memory_format=torch.channels_last)
        return y

    def copies(x):
        y = images(x)
        z = y
        if x.sum() > 0:
            z = y.to(torch.float32, copy=True)
        is_same = z is y
        y.add_(1)
        return z * 1, is_same

    def hands_on(x):
        y = images(x)
        z = y
        if x.sum() > 0:
            z = y.to(torch.float32)
        return z * 1, z is y

    functions = [C(function) for function in (lays_out, copies, hands_on)]
    return [function(of(value)) for function in functions for value in TAKEN]


def case_strides_of_results(C):
    """Of these, fake tensors have other strides than eager's."""

    def raises_a_number(x, image):
        return 2**image if x.sum() > 0 else image * 1

    def rolls(x, image):
        return torch.roll(image, 1, 0) if x.sum() > 0 else (image + 1).contiguous()

    def takes_the_sign(x, image):
        return torch.copysign(image, image.contiguous()) if x.sum() > 0 else (image + 1).contiguous()

    functions = [C(function) for function in (raises_a_number, rolls, takes_the_sign)]
    return [function(of(value), images(of(1), torch.channels_last)) for function in functions for value in TAKEN]


def case_strides_of_what_was_written_as_transposed(C):
    """AOTAutograd gives it those that the write had."""

    def writes_to_an_input(x, y):
        y.t().masked_fill_(y.t() > 3, 0.0)
        return y if x.sum() > 0 else torch.ones(6, 3)

    def writes_to_what_it_made(x, y):
        y = y + 1
        y.mT.index_add_(0, torch.tensor([0]), torch.ones(1, 6))
        if x.sum() > 0:
            y = torch.ones(6, 3)
        return y

    def writes_to_what_is_transposed(x, y):
        y = y.t()
        y.clamp_(max=3)
        y.masked_fill_(y > 2, 1.0)
        return y if x.sum() > 0 else (y * 2).t().contiguous().t()

    functions = [C(function) for function in (writes_to_an_input, writes_to_what_it_made, writes_to_what_is_transposed)]
    return [function(of(value), rows(2)) for function in functions for value in TAKEN]


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


def case_a_mask_among_other_targets(C):
    """One number of another dtype is converted where a mask is written to, wherever the target stands."""

    def writes(x):
        y = torch.zeros(4, 5, dtype=torch.float64)
        y[y > y.mean()], count = x.sum(), 1
        y[y == y.mean()], *rest = x.sum(), count, 2
        return y, rest

    compiled = C(writes)
    return [compiled(of(value)) for value in TAKEN]


def case_modes_of_a_graph_that_fails(C):
    """Dynamo gives up a frame with a break in a loop; in one graph `max` of nothing leaves the mode on."""

    def fails_without_gradients(x):
        for _ in range(2):
            if x.ne(0).any():
                pass
        with torch.no_grad():
            return x[:0].max()

    compiled, found = C(fails_without_gradients), []
    for value in TAKEN:
        torch.set_grad_enabled(True)
        try:
            compiled(of(value))
        except RuntimeError as error:
            found.append([type(error).__name__, torch.is_grad_enabled()])
    return found


def case_powers_of_a_count_after_a_write(C):
    """The frame may not run again, so that what is asserted of the count decides: 0 ** 0.5 is 0, and 0 ** -0.5 fails."""

    def is_raised(x, y):
        y.add_(1)
        return len(y[x > 0]) ** 0.5

    def has_a_root(x, y):
        y.add_(1)
        return math.sqrt(len(y[x > 0]))

    def divides(x, y):
        y.add_(1)
        return 1.0 / len(y[x > 0])

    def is_inverted(x, y):
        y.add_(1)
        return len(y[x > 0]) ** -0.5

    found = []
    for function in (is_raised, has_a_root, divides, is_inverted):
        compiled = C(function)
        for value in TAKEN:
            written = of(1)
            try:
                found.append(compiled(of(value), written))
            except (ArithmeticError, RuntimeError) as error:
                found.append([type(error).__name__, str(error)])
            found.append(written)
    return found


def case_draws_of_what_changes(C):
    """A number that has changed is a symbol to Dynamo, which numpy cannot take; a scale below 0 is refused."""

    def draws(x, n):
        drawn = np.random.normal(n)  # noqa: F841
        return x * 2

    def is_refused(x, scale):
        drawn = np.random.normal(0.0, scale)  # noqa: F841
        return x * 2

    found = []
    compiled = C(draws)
    for n in (2, 3, 5, 6):
        np.random.seed(0)
        found.append([compiled(of(n), n), np.random.random()])
    compiled = C(is_refused)
    for scale in (1.0, -1.0):
        np.random.seed(0)
        try:
            found.append(compiled(of(1), scale))
        except Exception as error:
            found.append(type(error).__name__)  # in the text Dynamo shows the line that it has compiled
        found.append(np.random.random())
    return found


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


def case_draws_that_nothing_uses(C):
    """What a decided test has drawn stays drawn: AOTAutograd takes out what nothing uses."""

    def decided(x):
        if torch.rand(2).sum() > 3 or len(x) > 0:
            x = x + 1
        return x + torch.rand(3)

    def named(x):
        drawn = torch.rand(2).sum() > 3
        if drawn and len(x) == 0:
            x = x + 1
        return x + torch.rand(3)

    def in_an_expression(x):
        y = x if (torch.rand(2) > 2).any() and len(x) == 0 else x * 2
        return y + torch.rand(3)

    def told_to_nobody(x):
        silent.debug("%s", torch.rand(2))
        return x + torch.rand(3)

    return of_each(C, [decided, named, in_an_expression, told_to_nobody])


def case_failures_that_nothing_uses(C):
    """An index out of bounds, no elements, a division by zero: eager raises, whether or not the test decides."""

    def out_of_bounds(x):
        if x[torch.tensor([7])].sum() > 3 or len(x) > 0:
            x = x + 1
        return x

    def asserts(x):
        assert x.index_select(0, torch.tensor([7])).sum() > 3 or len(x) > 0
        return x

    def has_no_elements(x):
        if x[:0].min() <= 1 or len(x) > 0:
            x = x + 1
        return x

    def divides(x):
        if (x.long() // torch.tensor(0)).sum() > 3 or len(x) > 0:
            x = x + 1
        return x

    def told_to_nobody(x):
        silent.debug("%s", x[torch.tensor([7])])
        return x * 2

    return [
        type(each).__name__ if isinstance(each, torch.Tensor) else each[0]
        for each in of_each(C, [out_of_bounds, asserts, has_no_elements, divides, told_to_nobody])
    ]

"""Runs a program as it is and mended, in eager and compiled, and says what can be told apart.

What is compared, for three calls of each program: the value (type, dtype, shape, stride, bits), which objects and
storages are the same, ``requires_grad``, gradients (None is not zero), the exception (type, text, arguments, cause),
every effect in order and place, the state of `self`, of the module and of the inputs, the modes of torch, and the
random generators of torch, numpy and Python.  What the compiled mended program may do otherwise:

- After an exception only the exception and the modes are compared, and the effects, the state and the random generators
  if it is one that the program raises itself.
- A tensor that is given back or kept may be a new one where it was the input (a selection makes a new one), never the
  other way round.  What the program itself can see of that, by `is` or a change in place, is compared.
- To the text of an error that Dynamo meets while tracing it adds the place, and an operation that cannot be done on
  the shapes at hand raises TorchRuntimeError, or what the operation raises of tensors without data.
- Autograd's functions have the names of the operations in the graph (docs/where.md).
- An operation of which nothing uses the result is dropped by AOTAutograd, and with it what it would draw or raise
  (docs/where.md).
- Under AOTAutograd a gradient of what is not finite may have other numbers that are not, and an input has zeros for None
  if what depends on it is handed out and not used: so it is in any graph that hands it out.
- It does not compile ``x.detach()`` in a `torch.inference_mode()` block of the compiled function.
- Inductor of torch 2.15 gives the input itself for ``x * 1``: which tensors are the same is compared on the other backends.
- Inductor rounds otherwise than eager, so its numbers are compared to within a tolerance; so are gradients under
  AOTAutograd, which sums those of one tensor in the order of the graph.
- Where eager runs out of memory nothing is compared: how much there is changes from call to call.
- What the compiled *original* does not do as eager does, the mended one need not do either.

To trace is what takes the time.  So a function whose code object is the one that Python makes of the original, and that
calls no other function of its module, is not compiled: there is nothing to compare.  And one that still breaks is called
once only, three times out of four: each further call would trace its other sides, as the original has them too.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import logging
import random
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import CodeType, ModuleType
from typing import Any
from unittest import mock

import numpy as np
import torch
from observing import Counting, import_file, observe, with_own_names

from graphmend_hook.engine.epilogue import queue
from graphmend_hook.hook.loader import Mender, MendingLoader
from graphmend_hook.product.report.ledger import Ledger, Status
from graphmend_hook.settings.config import Settings

from . import devices
from .grammar import PRELUDE, Program

CALLS = 3
SWITCHED = ("capture_scalar_outputs", "capture_dynamic_output_shape_ops")  # Dynamo's settings, for one operation each
OF_FAILED_GRAPHS = ("GM006", "GM009")  # notices that say that a graph raised
HELPERS = set(re.findall(r"^(?:def|class) (\w+)", PRELUDE, re.MULTILINE))
EAGER, UNCOMPILED = "eager", "uncompiled"
ABOUT = ("raised", "complete", "sums_anew")  # what is told of an outcome and not compared
UNCHANGED = (EAGER, UNCOMPILED)  # what runs is the graph of Dynamo, or none: AOTAutograd has no part in it
EXACT = (*UNCHANGED, "aot_eager")  # backends that round as eager does
TOLERANCE = 1e-3


# --- one call, and all there is to observe of it ---------------------------------------------------------------------

MOODS = {
    "positive": [0.25, 0.5, 1.0, 1.5, 2.0, 3.0],
    "negative": [-0.0, -0.25, -0.5, -1.0, -1.5, -2.0, -3.0],
    "mixed": [-3.0, -1.0, -0.5, 0.0, 0.5, 2.0],
    "special": [float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 70.0, -70.0, 1.0, -3.0, -0.5, 0.5, 2.0],
}


class Model(torch.nn.Module):
    """What `self` is in a program; `Box` has the same attributes and is no Module."""

    def __init__(self, dtype: torch.dtype, shape: Sequence[int], train: bool) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.full(tuple(shape), 1.5, dtype=dtype), requires_grad=train)
        self.v = torch.nn.Parameter(torch.full(tuple(shape), -0.5, dtype=dtype), requires_grad=train)
        self.register_buffer("s", torch.full(tuple(shape), 0.75, dtype=dtype))
        self.drop = torch.nn.Dropout(0.5)
        self.k, self.tag, self.cache = 1, "t", None
        self.rows, self.facts = [1, 2], {"a": 1}
        self.items: list[Any] = []
        self.table: dict[str, Any] = {}


class Box:
    training = True

    def __init__(self, model: Model) -> None:
        self.__dict__.update(attributes(model))
        self.drop = model.drop


def attributes(owner: Any) -> dict[str, Any]:
    """What a program can see and change of `self`."""
    own = {name: value for name, value in vars(owner).items() if not name.startswith("_") and name != "drop"}
    return {**own, **vars(owner).get("_parameters", {}), **vars(owner).get("_buffers", {})}


def values(rng: Random, mood: str, dtype: torch.dtype, shape: Sequence[int], train: bool) -> torch.Tensor:
    numbers = [rng.choice(MOODS[mood]) for _ in range(torch.Size(shape).numel())]
    if not dtype.is_floating_point:
        numbers = [int(number) if abs(number) < 100 else 0 for number in numbers]  # nan and inf are not
    return torch.tensor(numbers, dtype=dtype, device=devices.where).reshape(tuple(shape)).requires_grad_(train)


@dataclass(eq=False)
class Numbers:
    """The numbers of a tensor as they are now; those that a backend rounds otherwise are equal to within `tolerance`."""

    text: str  # nan equals nan, and -0.0 is not 0.0
    tensor: torch.Tensor
    tolerance: float

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Numbers) or self.text == other.text:
            return isinstance(other, Numbers)
        tolerance = max(self.tolerance, other.tolerance)
        same_form = self.tensor.shape == other.tensor.shape and self.tensor.is_floating_point()
        return bool(
            tolerance
            and same_form
            and torch.allclose(self.tensor.double(), other.tensor.double(), tolerance, tolerance, equal_nan=True)
        )

    def __repr__(self) -> str:
        return self.text


def numbers_of(tensor: torch.Tensor, tolerance: float) -> Numbers:
    kept = tensor.detach().clone()
    return Numbers(repr(kept.tolist()), kept, tolerance)


class Seen:
    """Describes values so that descriptions can be compared, and keeps which tensors and storages were the same."""

    def __init__(self, tolerance: float) -> None:
        self.tensors: list[torch.Tensor] = []
        self.tolerance = tolerance

    def describe(self, value: Any) -> Any:
        kind = type(value).__name__
        if isinstance(value, torch.Tensor):
            self.tensors.append(value)
            # How far apart the elements lie along a dimension of one tells nothing, and kernels choose it as they like.
            strides = [stride for size, stride in zip(value.shape, value.stride(), strict=True) if size > 1]
            layout = str(value.dtype), tuple(value.shape), tuple(strides) if value.numel() else ()
            return (kind, *layout, numbers_of(value, self.tolerance))
        if isinstance(value, list | tuple):
            return (kind, *map(self.describe, value))
        if isinstance(value, dict):
            return (kind, *((key, self.describe(value[key])) for key in value))
        if isinstance(value, BaseException):
            text, augmented, _ = str(value).partition("\n\nfrom user code:\n")
            arguments = (text,) if augmented else value.args
            return (kind, text, self.describe(arguments), self.describe(value.__cause__))
        if type(value).__module__.startswith("random_programs"):
            return (kind, *((name, self.describe(vars(value)[name])) for name in sorted(vars(value))))
        known = value is None or isinstance(value, str | int | float | torch.dtype | torch.Size)
        return (kind, repr(value)) if known else (kind,)

    def identity(self) -> list[tuple[int, int]]:
        objects = [id(tensor) for tensor in self.tensors]
        storages = [tensor.untyped_storage()._cdata for tensor in self.tensors]
        return [(objects.index(one), storages.index(other)) for one, other in zip(objects, storages)]


class Notices(logging.Handler):
    """What the hook itself says: each is a fault, but those that say that a graph raised."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if not text.startswith(OF_FAILED_GRAPHS):
            self.texts.append(f"{text} {record.exc_info[1] if record.exc_info else ''}")


@dataclass
class Arguments:
    """What `f` is called with, made anew for each call; `leaves` are where gradients arrive."""

    owner: Any
    x: torch.Tensor
    y: torch.Tensor
    n: int
    flag: Any
    leaves: list[torch.Tensor]


def arguments(program: Program, call: int) -> Arguments:
    """Positive numbers in one call, negative ones in another, and then what no function likes."""
    rng = Random(program.seed)
    moods = [*rng.sample(["positive", "negative"], 2), rng.choice(["special", "mixed"])]
    x_mood, y_mood = moods[call], rng.sample(moods, CALLS)[call]
    rng.seed(f"{program.seed} {call}")
    dtype, other = getattr(torch, program.dtype), getattr(torch, program.other)
    changed = program.vary and call == CALLS - 1
    shape, other_shape = (
        [*shape[:-1], shape[-1] + 1] if changed and shape else shape for shape in (program.shape, program.other_shape)
    )
    x = values(rng, x_mood, dtype, shape, program.train)
    y = values(rng, y_mood, other, other_shape, program.train and other.is_floating_point)
    model = Model(dtype if dtype.is_floating_point else torch.float32, shape, program.train).to(devices.where)
    leaves = [x, y, model.w, model.v]
    if program.train and not program.leaf:
        x, y = x * 1, y * 1
    return Arguments(model if program.module else Box(model), x, y, program.n + changed, program.flag, leaves)


def outcome(
    function: Any, module: ModuleType, program: Program, call: int, tolerance: float = 0.0, sums_anew: bool = False
) -> dict[str, Any]:
    """Call `function` with the arguments of `call`; everything that can be observed, by name.

    tolerance: of floating-point numbers, absolute and relative; 0: they are equal to the bit.  Gradients may be
        rounded otherwise where `sums_anew`.
    "raised" is not compared: whether the exception comes from a `raise` or an `assert` of the program.
    """
    given = arguments(program, call)
    given.owner.meter, given.owner.private, given.owner.backend = module.Meter(), module.Private(), module.Backend()
    module.TALLY = 0
    torch.manual_seed(call)
    np.random.seed(call)
    random.seed(call)
    raised: list[BaseException] = []

    def run() -> Any:
        try:
            return function(given.owner, given.x, given.y, given.n, given.flag)
        except Exception as error:
            raised.append(error)
            raise

    notices = Notices()
    logging.getLogger("graphmend_hook").addHandler(notices)
    try:
        observed = observe(run, "random_programs")
    finally:
        logging.getLogger("graphmend_hook").removeHandler(notices)
    rng_state = devices.state_of_generators(), np.random.bytes(8), random.random()
    modes = modes_now()
    seen = Seen(tolerance)
    result = {
        "error": seen.describe(raised[0]) if raised else None,
        "effects": [
            of_any_file(with_own_names(effect), tolerance) for effect in observed.effects if not by_torch(effect)
        ],
        "notices": notices.texts,
        "inputs": seen.describe([given.x, given.y]),
        "state": [(name, seen.describe(value)) for name, value in sorted(attributes(given.owner).items())],
        "globals": module.TALLY,
        "value": seen.describe(observed.value),
        "identity": seen.identity(),
        "requires_grad": [tensor.requires_grad for tensor in seen.tensors],
        "rng": rng_state,
        "modes": modes,
        "raised": bool(raised) and raised_by_the_program(raised[0], module),
    }
    if program.train and not raised:
        result["grads"] = gradients(observed.value, given.leaves, tolerance, sums_anew)
    return result


def modes_now() -> tuple[Any, ...]:
    """The modes of torch that a program may leave on; they are what they were at the start again."""
    found = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")
    for mode in reversed(torch.overrides._get_current_function_mode_stack()):
        mode.__exit__(None, None, None)  # which Dynamo itself leaves on, where what follows a break in its `with` fails
    torch.set_grad_enabled(True)
    torch.set_autocast_enabled("cpu", False)
    return found


def of_any_file(effect: tuple[object, ...], tolerance: float) -> tuple[object, ...]:
    """Without the number of the file: two have the helpers, and Dynamo takes one for the other (docs/defer.md).

    Nor with the names of operations, nor with numbers that may be rounded.
    """

    def common(part: str) -> str:
        text = of_any_operation(re.sub(r"(random_programs)_\d+", r"\1", part))
        return re.sub(r"-?\d+\.\d*(e[-+]\d+)?", "#", text) if tolerance else text

    return tuple(common(part) if isinstance(part, str) else part for part in effect)


def of_any_operation(text: str) -> str:
    """Without the names of autograd's functions."""
    return re.sub(r"\b[A-Z]\w*Backwards?\d*\b|(?<=output \d of )[\w:]+", "Backward", text)


def by_torch(effect: tuple[object, ...]) -> bool:
    """Is it a warning of torch's own, of which many come once in a process only, or what it prints of a graph?"""
    kind, text = effect[:2]
    if kind == "stderr" and ("<eval_with_key>" in str(text) or text == "\n"):
        return True
    return str(kind).endswith("Warning") and not str(text).startswith("log ")


def raised_by_the_program(error: BaseException, module: ModuleType) -> bool:
    last = traceback.extract_tb(error.__traceback__)[-1]
    words = {*re.findall(r"\w+", last.line or "")}
    return last.filename == module.__file__ and (
        "raise" in words or ("assert" in words and isinstance(error, AssertionError))
    )


def gradients(value: Any, leaves: list[torch.Tensor], tolerance: float, sums_anew: bool) -> Any:
    """Of the sum of all that `value` holds; that of an input that plays no part is None, which is not zero."""
    tensors = [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]
    try:
        terms = [tensor.float().sum() for tensor in tensors if tensor.requires_grad]
        if terms:
            torch.stack(terms).sum().backward()
    except RuntimeError as error:
        return of_any_operation(str(error))
    # Sums of gradients: zeros of the untaken side may turn -0.0 into 0.0.
    found = [None if leaf.grad is None else leaf.grad + 0.0 for leaf in leaves]
    return [
        None if grad is None else numbers_of(grad, tolerance or sums_anew * 8 * torch.finfo(grad.dtype).eps)
        for grad in found
    ]


_OUT_OF_MEMORY = "can't allocate memory"


def differences(expected: dict[str, Any], actual: dict[str, Any], compiled: bool) -> set[str]:
    if _OUT_OF_MEMORY in str(expected["error"]):
        return set()
    if compiled and expected["error"]:
        if not (actual["error"] or actual["complete"] or expected["raised"]):
            return set()
        by_torch = not expected["raised"] and not actual["raised"] and actual["error"]
        names = {"error"} if actual["error"] != expected["error"] and not by_torch else set()
        names |= {"modes"} if actual["modes"] != expected["modes"] else set()
        kept = ("effects", "state", "rng") if actual["complete"] else ("effects", "state")
        return names | {name for name in kept if expected["raised"] and actual[name] != expected[name]}
    names = {name for name in expected if name not in ABOUT and expected[name] != actual.get(name)}
    if not actual["complete"]:
        names.discard("rng")
    if actual["sums_anew"] and "grads" in names and are_as_aot_makes_them(expected["grads"], actual.get("grads")):
        names.discard("grads")
    if compiled and not names & {"error", "value", "state"} and not gained(expected["identity"], actual["identity"]):
        names.discard("identity")
    return names


def are_as_aot_makes_them(expected: Any, actual: Any) -> bool:
    """Do gradients differ only where both have numbers that are not finite, or zeros stand for None?"""
    if not isinstance(expected, list) or not isinstance(actual, list):
        return False

    def is_one(one: Numbers | None, other: Numbers | None) -> bool:
        if one == other or other is None:
            return one == other
        if one is None:
            return not other.tensor.any()
        return not (one.tensor.isfinite().all() or other.tensor.isfinite().all())

    return all(map(is_one, expected, actual))


def gained(expected: list[tuple[int, int]], actual: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pairs of tensors that are one object, or share a storage, in `actual` but not in `expected`."""
    pairs = itertools.combinations(range(len(expected)), 2)
    return [
        (one, other)
        for one, other in pairs
        if any(now[one] == now[other] and was[one] != was[other] for was, now in zip(zip(*expected), zip(*actual)))
    ]


# --- many programs ---------------------------------------------------------------------------------------------------

Load = Callable[[Path, str], ModuleType]
numbers = itertools.count()


@dataclass
class Failure:
    """`program` mended does something else in its call number `call`, in eager or compiled ("arm")."""

    program: Program
    arm: str
    call: int = 0
    names: set[str] = field(default_factory=set)
    expected: dict[str, Any] = field(default_factory=dict)
    actual: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"seed {self.program.seed}: {self.arm}, call {self.call}: {', '.join(sorted(self.names))}"]
        for name in sorted(self.names):
            lines += [
                f"    {name}",
                f"        original {self.expected.get(name)}",
                f"        mended   {self.actual.get(name)}",
            ]
        return "\n".join([*lines, self.program.source, repr(self.program)])


class MendingFailedError(Exception):
    """The rewriter raised, and the loader fell back to the original."""


def import_mended(path: Path, name: str) -> ModuleType:
    ledger = Ledger()
    mender = Mender(Settings(modules=(name,), cache_dir=Path("/dev/null/no-cache")), ledger)
    module = import_file(path, name, MendingLoader(name, str(path), mender))
    for record in ledger.with_status(Status.FAILED):
        raise MendingFailedError(record.why)
    return module


@contextlib.contextmanager
def quick_and_quiet() -> Iterator[None]:
    """Without what Dynamo has to say of each break, and without what it does beside tracing.

    Garbage collection is a fifth of the time, and to measure each guard (a flush of the caches of the machine) a tenth.
    """
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    gc.disable()
    unmeasured = mock.patch.object(torch._dynamo.guards, "profile_guard_manager", return_value=0.0)
    uncaptured = mock.patch.object(logging.getLogger("random_programs"), "handlers", [])  # by pytest
    try:
        with unmeasured, uncaptured:
            yield
    finally:
        logger.setLevel(level)
        gc.enable()


def module_of(programs: Sequence[Program]) -> str:
    """The text of a module in which the programs are functions `f0`, `f1`, ..."""
    texts = [re.sub(r"^def f\(", f"def f{index}(", program.source) for index, program in enumerate(programs)]
    libraries = dict.fromkeys(program.library for program in programs if program.library)
    return "\n\n".join([PRELUDE, *(_NAMES_OF.format(library) for library in libraries), *texts])


# Those of the prelude come first.
_NAMES_OF = """
import importlib

for name, value in vars(importlib.import_module({!r})).items():
    globals().setdefault(name, value)
"""


def check(
    programs: Sequence[Program], directory: Path, load: Load = import_mended, backend: str = EAGER
) -> list[Failure]:
    """Every way in which one of `programs`, mended by `load`, can be told from the original.

    backend: with which they are compiled, beside being run in eager; "uncompiled": they are not.
    """
    name = f"random_programs_{next(numbers)}"
    path = directory / f"{name}.py"
    functions = [f"f{index}" for index in range(len(programs))]
    path.write_text(module_of(programs))
    torch._dynamo.reset()
    plain = import_file(path, f"{name}_plain")
    try:
        mended = load(path, f"{name}_mended")
        with quick_and_quiet():
            return [
                failure
                for program, function in zip(programs, functions)
                for failure in compare(program, function, plain, mended, backend)
            ]
    except MendingFailedError as error:
        if len(programs) == 1:
            return [Failure(programs[0], f"mending failed with {error}")]
        return [failure for program in programs for failure in check([program], directory, load, backend)]
    finally:
        for kind in ("plain", "mended"):
            sys.modules.pop(f"{name}_{kind}", None)


def suits_aot(source: str) -> bool:
    """May AOTAutograd be given it?  It stores to all of a tensor where eager stores to none of it.

    And in inference mode it does not compile `detach`.
    """
    names = {*re.findall(r"\w+", source)}
    return "READONLY" not in names and not {"inference_mode", "detach"} <= names


def compare(program: Program, function: str, plain: ModuleType, mended: ModuleType, backend: str) -> Iterator[Failure]:
    tolerance = TOLERANCE if backend not in EXACT else 0.0

    def calls(module: ModuleType, compiled: bool, thrifty: bool = False) -> Iterator[dict[str, Any]]:
        sums_anew = compiled and backend not in UNCHANGED
        counting = Counting(backend if compiled else EAGER)
        called = getattr(module, function)
        called = torch.compile(called, backend=counting) if compiled else called
        for call in range(CALLS):
            found = outcome(called, module, program, call, tolerance, sums_anew)
            # Of what else is not compared: has everything been done that the graphs say?
            yield {**found, "sums_anew": sums_anew, "complete": not (sums_anew and counting.has_unused)}
            if thrifty and counting.graphs > 1 and program.seed % 4:
                return

    if devices.where != devices.CPU:
        with mock.patch.object(devices, "where", devices.CPU):
            if devices.may_end_a_device(list(calls(plain, compiled=False))):
                return
    expected = list(calls(plain, compiled=False))
    code = getattr(mended, function).__code__
    untouched = code == getattr(plain, function).__code__ and HELPERS.isdisjoint(names_of(code))
    for compiled in (False,) if untouched or backend == UNCOMPILED else (False, True):
        known: list[dict[str, Any]] = []
        for call, actual in enumerate(calls(mended, compiled, thrifty=True)):
            names = differences(expected[call], actual, compiled)
            if tolerance:
                names.discard("rng")  # Inductor draws one seed for a graph
            if names and compiled:
                known = known or list(calls(plain, compiled=True))
                names -= differences(expected[call], known[call], compiled)
                if tolerance:
                    names.discard("identity")
                elif names == {"identity"} and not gained(expected[call]["identity"], actual["identity"]):
                    continue
            if names:
                yield Failure(program, "compiled" if compiled else "eager", call, names, expected[call], actual)
                break
    left_on = [name for name in SWITCHED if getattr(torch._dynamo.config, name)]
    if left_on:
        for setting in left_on:
            setattr(torch._dynamo.config, setting, False)
        yield Failure(program, f"left on: {left_on}")
    if queue.graphmend_pending:
        queue.graphmend_pending.clear()
        yield Failure(program, "an effect was left in the queue")


def names_of(code: CodeType) -> set[str]:
    inner = [names_of(const) for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*inner)

"""Property: a mended random program does what the original does, in eager and compiled.

Hypothesis draws the seeds of batches, `programs.program_of` makes each program from an integer seed with Python's own
`random`: so a module of many programs is written, mended and imported at once, all failures of a run are found, and one
integer repeats one of them.  Hypothesis could only shrink that integer: `reduced` shrinks the program instead, by
leaving out statements as long as the same observation differs.

    python tests/compiled/test_random_programs.py SEED ...     checks the programs of these seeds, prints what differs
    RANDOM_PROGRAMS=50000 pytest tests/compiled/test_random_programs.py      more programs than the 2,000 of CI
    RANDOM_PROGRAMS_BACKEND=aot_eager                                        another backend

The names do not start with ``GRAPHMEND_`` because that would be a setting that the hook does not know.

What is compared, for three calls of each program: the value (type, dtype, shape, stride, bits), which objects and
storages are the same, ``requires_grad``, gradients (None is not zero), the exception (type, text, arguments, cause),
every effect in order and place, the state of `self`, of the module and of the inputs, and of the random generators.
What the compiled mended program may do otherwise:

- After an exception only the exception is compared, and that no effect of eager is missing if it is one that the program
  raises itself: what was deferred is delivered, and a guard raises, at the end of the graph (docs/defer.md).
- A tensor that is given back or kept may be a new one where it was the input (a selection makes a new one), never the
  other way round.  What the program itself can see of that, by `is` or a change in place, is compared.
- To the text of an error that Dynamo meets while tracing it adds the place, and an operation that cannot be done on
  the shapes at hand raises TorchRuntimeError, a RuntimeError.
- Autograd's functions have the names of the operations in the graph (docs/where.md).
- What the compiled *original* does not do as eager does, the mended one need not do either.

To trace is what takes the time.  So a function whose code object is the one that Python makes of the original, and that
calls no other function of its module, is not compiled: there is nothing to compare.  And one that still breaks is called
once only, three times out of four: each further call would trace its other sides, as the original has them too.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import gc
import itertools
import logging
import os
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from random import Random
from types import CodeType, ModuleType
from typing import Any
from unittest import mock

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from kept_programs import KEPT
from observing import Counting, import_file, observe, with_own_names
from programs import PRELUDE, Program, program_of

from graphmend_hook.config import RULE_NAMES, Settings
from graphmend_hook.diagnostics import Outcome
from graphmend_hook.dynamo import queue
from graphmend_hook.hook.loader import Mender, MendingLoader
from graphmend_hook.reporting.ledger import Ledger, Status
from graphmend_hook.rewrite import active_rules, rewrite

PROGRAMS = int(os.environ.get("RANDOM_PROGRAMS", "2000"))
BACKEND = os.environ.get("RANDOM_PROGRAMS_BACKEND", "eager")
PARTS = 8  # so that pytest-xdist can share the work
BATCH = 50
REDUCED = 3  # failures of one part that are reduced; the others are only named
TRIES = 150
CALLS = 3
SWITCHED = ("capture_scalar_outputs", "capture_dynamic_output_shape_ops")  # Dynamo's settings, for one operation each
HELPERS = set(re.findall(r"^def (\w+)", PRELUDE, re.MULTILINE))


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
    return torch.tensor(numbers, dtype=dtype).reshape(tuple(shape)).requires_grad_(train)


class Seen:
    """Describes values so that descriptions can be compared, and keeps which tensors and storages were the same."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []

    def describe(self, value: Any) -> Any:
        kind = type(value).__name__
        if isinstance(value, torch.Tensor):
            self.tensors.append(value)
            layout = str(value.dtype), tuple(value.shape), value.stride() if value.numel() else ()
            return (kind, *layout, repr(value.detach().tolist()))  # repr: nan equals nan, -0.0 is not 0.0
        if isinstance(value, list | tuple):
            return (kind, *map(self.describe, value))
        if isinstance(value, dict):
            return (kind, *((key, self.describe(value[key])) for key in value))
        if isinstance(value, BaseException):
            text, augmented, _ = str(value).partition("\n\nfrom user code:\n")
            arguments = (text,) if augmented else value.args
            return (kind, text, self.describe(arguments), self.describe(value.__cause__))
        known = value is None or isinstance(value, str | int | float | torch.dtype | torch.Size)
        return (kind, repr(value)) if known else (kind,)

    def identity(self) -> list[tuple[int, int]]:
        objects = [id(tensor) for tensor in self.tensors]
        storages = [tensor.untyped_storage()._cdata for tensor in self.tensors]
        return [(objects.index(one), storages.index(other)) for one, other in zip(objects, storages)]


class Notices(logging.Handler):
    """What the hook itself says: each is a fault, but GM006 and GM009, which say that a graph raised."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if not text.startswith(("GM006", "GM009")):
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
    model = Model(dtype if dtype.is_floating_point else torch.float32, shape, program.train)
    leaves = [x, y, model.w, model.v]
    if program.train and not program.leaf:
        x, y = x * 1, y * 1
    return Arguments(model if program.module else Box(model), x, y, program.n + changed, program.flag, leaves)


def outcome(function: Any, module: ModuleType, program: Program, call: int) -> dict[str, Any]:
    """Call `function` with the arguments of `call`; everything that can be observed, by name.

    "raised" is not compared: whether the exception comes from a `raise` or an `assert` of the program.
    """
    given = arguments(program, call)
    module.TALLY = 0
    torch.manual_seed(call)
    np.random.seed(call)
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
    rng_state = torch.get_rng_state().numpy().tobytes(), np.random.bytes(8)
    seen = Seen()
    result = {
        "error": seen.describe(raised[0]) if raised else None,
        "effects": [in_any_file(with_own_names(effect)) for effect in observed.effects if not by_torch(effect)],
        "notices": notices.texts,
        "inputs": seen.describe([given.x, given.y]),
        "state": [(name, seen.describe(value)) for name, value in sorted(attributes(given.owner).items())],
        "globals": module.TALLY,
        "value": seen.describe(observed.value),
        "identity": seen.identity(),
        "requires_grad": [tensor.requires_grad for tensor in seen.tensors],
        "rng": rng_state,
        "raised": bool(raised) and raised_by_the_program(raised[0], module),
    }
    if program.train and not raised:
        result["grads"] = gradients(observed.value, given.leaves)
    return result


def in_any_file(effect: tuple[object, ...]) -> tuple[object, ...]:
    """Without the number of the file: two have the helpers, and Dynamo takes one for the other (docs/defer.md).

    Nor with the names of operations.
    """
    return tuple(
        of_any_operation(re.sub(r"(random_programs)_\d+", r"\1", part)) if isinstance(part, str) else part
        for part in effect
    )


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
    return last.filename == module.__file__ and re.search(r"\b(raise|assert)\b", last.line or "") is not None


def gradients(value: Any, leaves: list[torch.Tensor]) -> Any:
    """Of the sum of all that `value` holds; that of an input that plays no part is None, which is not zero."""
    tensors = [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]
    terms = [tensor.float().sum() for tensor in tensors if tensor.requires_grad]
    try:
        if terms:
            torch.stack(terms).sum().backward()
    except RuntimeError as error:
        return of_any_operation(str(error))
    # Sums of gradients: zeros of the untaken side may turn -0.0 into 0.0.
    return [None if leaf.grad is None else repr((leaf.grad + 0.0).tolist()) for leaf in leaves]


def differences(expected: dict[str, Any], actual: dict[str, Any], compiled: bool) -> set[str]:
    if compiled and expected["error"]:
        dynamos = not expected["raised"] and actual["error"] and actual["error"][0] == "TorchRuntimeError"
        names = {"error"} if actual["error"] != expected["error"] and not dynamos else set()
        lost = actual["effects"][: len(expected["effects"])] != expected["effects"]
        return names | ({"effects"} if expected["raised"] and lost else set())
    names = {name for name in expected if name != "raised" and expected[name] != actual.get(name)}
    if compiled and not names & {"error", "value", "state"} and not gained(expected["identity"], actual["identity"]):
        names.discard("identity")
    return names


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

    Garbage collection is a fifth of the time.
    """
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    gc.disable()
    unread = mock.patch.object(logging.getLogger("torch.__trace"), "handlers", [])
    uncaptured = mock.patch.object(logging.getLogger("random_programs"), "handlers", [])  # by pytest
    try:
        with unread, uncaptured:
            yield
    finally:
        logger.setLevel(level)
        gc.enable()


def module_of(programs: Sequence[Program]) -> str:
    """The text of a module in which the programs are functions `f0`, `f1`, ..."""
    texts = [re.sub(r"^def f\(", f"def f{index}(", program.source) for index, program in enumerate(programs)]
    return "\n\n".join([PRELUDE, *texts])


def check(programs: Sequence[Program], directory: Path, load: Load = import_mended) -> list[Failure]:
    """Every way in which one of `programs`, mended by `load`, can be told from the original."""
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
                for failure in compare(program, function, plain, mended)
            ]
    except MendingFailedError as error:
        if len(programs) == 1:
            return [Failure(programs[0], f"mending failed with {error}")]
        return [failure for program in programs for failure in check([program], directory, load)]
    finally:
        for kind in ("plain", "mended"):
            sys.modules.pop(f"{name}_{kind}", None)


def compare(program: Program, function: str, plain: ModuleType, mended: ModuleType) -> Iterator[Failure]:
    def calls(module: ModuleType, compiled: bool, thrifty: bool = False) -> Iterator[dict[str, Any]]:
        counting = Counting(BACKEND)
        called = getattr(module, function)
        called = torch.compile(called, backend=counting) if compiled else called
        for call in range(CALLS):
            yield outcome(called, module, program, call)
            if thrifty and counting.graphs > 1 and program.seed % 4:
                return

    expected = list(calls(plain, compiled=False))
    code = getattr(mended, function).__code__
    untouched = code == getattr(plain, function).__code__ and HELPERS.isdisjoint(names_of(code))
    for compiled in (False,) if untouched else (False, True):
        known: list[dict[str, Any]] = []
        for call, actual in enumerate(calls(mended, compiled, thrifty=True)):
            names = differences(expected[call], actual, compiled)
            if names and compiled:
                known = known or list(calls(plain, compiled=True))
                names -= differences(expected[call], known[call], compiled)
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


# --- fewer statements ------------------------------------------------------------------------------------------------


def smaller(program: Program) -> Iterator[Program]:
    """Programs that lack a statement, have an expression's operand for the expression, or plainer arguments."""
    tree = ast.parse(program.source)
    for index, node in enumerate(ast.walk(tree)):
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt) and node is not tree:
                for place, statement in enumerate(value):
                    for instead in ([], getattr(statement, "body", None), getattr(statement, "orelse", None)):
                        if instead is not None and not isinstance(instead, ast.expr):
                            block = [*value[:place], *instead, *value[place + 1 :]]
                            yield replace(program, source=_with(tree, index, name, block or [ast.Pass()]))
            elif isinstance(value, ast.BoolOp | ast.IfExp | ast.BinOp | ast.UnaryOp | ast.Call):
                for operand in ast.iter_child_nodes(value):
                    if isinstance(operand, ast.expr):
                        yield replace(program, source=_with(tree, index, name, operand))
    for option in fields(Program):
        if option.name not in ("source", "seed") and getattr(program, option.name) != option.default:
            yield replace(program, **{option.name: option.default})


def _with(tree: ast.Module, index: int, name: str, value: Any) -> str:
    """The text of `tree` with another `value` in field `name` of its node number `index`."""
    changed = copy.deepcopy(tree)
    setattr(list(ast.walk(changed))[index], name, value)
    return ast.unparse(changed) + "\n"


def reduced(failure: Failure, directory: Path, load: Load = import_mended) -> Failure:
    """The same failure of a smaller program, or of the one that could be had with `TRIES` attempts."""
    tried = {failure.program}
    place = since_success = 0
    candidates = list(smaller(failure.program))
    while since_success < len(candidates) and len(tried) < TRIES:
        candidate = candidates[place % len(candidates)]
        place += 1
        since_success += 1
        if candidate in tried:
            continue
        tried.add(candidate)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = check([candidate], directory, load)
        except Exception:  # no program any more
            continue
        for other in found:
            if other.arm == failure.arm and (other.names & failure.names or not failure.names):
                failure, candidates = other, list(smaller(candidate))
                place, since_success = place - 1, 0  # the next statement has taken the place of this one
                break
    return failure


def report(failures: list[Failure], directory: Path) -> str:
    shown = [str(reduced(failure, directory)) for failure in failures[:REDUCED]]
    others = [f"seed {failure.program.seed}: {failure.arm}: {sorted(failure.names)}" for failure in failures[REDUCED:]]
    return "\n\n".join([f"{len(failures)} failures", *shown, *others])


def expect_none(failures: list[Failure], directory: Path) -> None:
    if failures:
        pytest.fail(report(failures, directory), pytrace=False)


# --- the property ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs(part: int, tmp_path: Path) -> None:
    failures: list[Failure] = []
    share = max(1, PROGRAMS // PARTS)
    size = min(BATCH, share)
    batches = -(-share // size)

    @hypothesis.seed(part)
    @hypothesis.settings(max_examples=batches, phases=[hypothesis.Phase.generate], deadline=None, database=None)
    @hypothesis.given(st.integers(part << 20, ((part + 1) << 20) - 1))
    def batch(number: int) -> None:
        failures.extend(check([program_of(number * BATCH + index) for index in range(size)], tmp_path))

    batch()
    expect_none(failures, tmp_path)


@pytest.mark.parametrize("name", KEPT)
def test_kept_programs(name: str, tmp_path: Path) -> None:
    expect_none(check([KEPT[name]], tmp_path), tmp_path)


# --- that the property can fail --------------------------------------------------------------------------------------

WRONG = [
    (
        "the gradient of the untaken side is not a number",
        "    if (x > 0).all():\n        a = x.log()\n    else:\n        a = x * 2\n",
        "    a = torch.where((x > 0).all(), x.log(), x * 2)\n",
        "grads",
    ),
    (
        "a parameter of the untaken side has no gradient",
        "x * self.w if x.sum() > 0 else x * self.v",
        "torch.where(x.sum() > 0, x * self.w, x * self.v)",
        "grads",
    ),
    ("the result of a branch is changed in place", "a = x\n", "a = x.clone()\n", "inputs"),
    ("a default that one side replaces", "scale = 2.5", "scale = torch.tensor(2.5)", "value"),
    ("a default that one side replaces", "return x * scale", "self.last = x\n    return x * scale", "state"),
    ("unbound unless taken", "if x.sum() > 0:\n        a = x * 2", "if True:\n        a = x * 2", "error"),
    (
        "the generator moves on one side only",
        "x + torch.rand(x.shape) if x.sum() > 0 else x",
        "torch.where(x.sum() > 0, x + torch.rand(x.shape), x)",
        "rng",
    ),
    ("a guard protects an index", "raise IndexError(f", "raise KeyError(f", "error"),
    (
        "a guard in a loop, in a helper and in a branch",
        'logger.info("log %d", i)',
        'logger.info("log %d", n)',
        "effects",
    ),
    ("state on both ends of a guard", "self.k += 1", "self.k += 2", "state"),
    ("minus zero and one side of another layout", "-x * 0 if x.sum() > 0 else x * 0", "x * 0", "value"),
    ("minus zero and one side of another layout", "torch.stack([a, a], -1)[..., 0]", "a + 0", "value"),
    ("a copy stays a copy", "x.clone()", "x", "identity"),
]


def wrongly(old: str, new: str) -> Load:
    """Loads a module with `new` in place of `old`, as a rule might that has an error."""

    def load(path: Path, name: str) -> ModuleType:
        module = sys.modules[name] = ModuleType(name)
        module.__file__ = str(path)
        exec(compile(path.read_text().replace(old, new), str(path), "exec"), vars(module))
        return module

    return load


@pytest.mark.parametrize(("name", "old", "new", "seen_in"), WRONG)
def test_a_wrong_mending_is_found(name: str, old: str, new: str, seen_in: str, tmp_path: Path) -> None:
    assert old in KEPT[name].source
    failures = check([KEPT[name]], tmp_path, wrongly(old, new))
    assert [failure.arm for failure in failures] == ["eager", "compiled"]
    assert all(seen_in in failure.names for failure in failures)


def test_a_program_is_reduced_to_what_fails(tmp_path: Path) -> None:
    load = wrongly("+= 1", "+= 2")
    source = """\
def f(self, x, y, n, flag):
    a = x + y
    if x.sum() > 0 or n < 9:
        a = a.abs()
        self.k += 1
    return a
"""
    failure = check([Program(source, dtype="int64")], tmp_path, load)[0]
    found = reduced(failure, tmp_path, load).program
    assert found == Program("def f(self, x, y, n, flag):\n    self.k += 1\n")


@pytest.mark.slow
def test_the_programs_reach_every_rule() -> None:
    text = module_of([program_of(seed) for seed in range(600)])
    sites = rewrite(text.encode(), "programs.py", active_rules(RULE_NAMES)).sites
    seen = {(site.rule, site.outcome) for site in sites if re.match(r"f\d", site.function)}
    # For what these decline, a program needs two rare spices.
    rare = set(itertools.product(("value", "sweep"), [Outcome.DECLINED]))
    assert seen | rare == set(itertools.product(RULE_NAMES, Outcome))


def test_most_calls_return(tmp_path: Path) -> None:
    programs = [program_of(seed) for seed in range(100)]
    path = tmp_path / "programs_that_return.py"
    path.write_text(PRELUDE)
    module = import_file(path, "programs_that_return")
    returned = 0
    for program, call in itertools.product(programs, range(CALLS)):
        exec(program.source, vars(module))
        returned += not outcome(module.f, module, program, call)["error"]
    assert 0.7 < returned / (len(programs) * CALLS) < 0.95


if __name__ == "__main__":
    # "pytest" in the name: `observe` takes warnings from such directories for the program's own.
    with tempfile.TemporaryDirectory(prefix="pytest-") as temporary:
        directory = Path(temporary)
        found = check([program_of(int(seed)) for seed in sys.argv[1:]], directory)
        sys.exit(report(found, directory) if found else None)

"""The table of operations against torch itself: what it says of each name is measured on values that bite."""

from __future__ import annotations

import functools
import inspect
import itertools
import logging
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map

from graphmend_hook.source import tensor_ops as ops

SIZE = 8  # operands are SIZE by SIZE: every value meets every other
DTYPES = (torch.float32, torch.float16, torch.int64, torch.bool)
MORE_DTYPES = (*DTYPES, torch.int32, torch.uint8)
ALL_DTYPES = (*MORE_DTYPES, torch.bfloat16, torch.float64, torch.int8, torch.int16)
SPACES = {"torch": torch, "functional": F, "Tensor": torch.Tensor}


class Slot(NamedTuple):
    """A place in a recipe: for a tensor of the tested type (X, Y, Z), a boolean one (B) or a number (N)."""

    name: str


X, Y, Z, B, N = map(Slot, "XYZBN")
TENSORS = (X, Y, Z, B)

# Arguments, and the names that are called with them: in each namespace, or in that before the colon.
# A dictionary at the end holds keywords.
RECIPES: tuple[tuple[tuple[Any, ...], str], ...] = (
    # values of Python
    ((X,), "dim element_size is_complex is_contiguous is_floating_point is_tensor ndimension nelement numel size"),
    ((X, Y), "result_type"),
    ((torch.float16,), "finfo"),
    ((torch.int32,), "iinfo"),
    ((torch.int32, torch.float16), "promote_types"),
    (((1, 8), (8, 1)), "broadcast_shapes"),
    # made
    (((2, 3),), "ones zeros"),
    ((3,), "arange eye ones zeros"),
    ((0, 8, 3), "arange"),
    (((2, 3), N), "full"),
    (((2, 3), N, {"dtype": torch.float16}), "full"),
    (([1.0, 2.0],), "as_tensor tensor"),
    ((X,), "ones_like zeros_like"),
    ((X, N), "full_like"),
    ((X, (2, 3)), "new_ones new_zeros"),
    ((X, (2, 3), N), "new_full"),
    ((X, [1, 2]), "new_tensor"),
    # aliases and copies
    ((X,), "bfloat16 bool byte char double float half int long short contiguous detach positive clone"),
    ((X,), "atleast_1d atleast_2d atleast_3d diagonal flatten ravel squeeze t tril triu unbind"),
    ((X, torch.float16), "to"),
    ((X, Y), "expand_as reshape_as to type_as view_as"),
    ((X, (SIZE * SIZE,)), "reshape view"),
    ((X, (SIZE, SIZE)), "broadcast_to expand"),
    ((X, 1, (2, 4)), "unflatten"),
    ((X, 0), "unsqueeze"),
    ((X, 0, 1), "moveaxis movedim select swapaxes swapdims transpose"),
    ((X, (1, 0)), "permute"),
    ((X, 2), "chunk split tensor_split"),
    ((X, [3, 5]), "split split_with_sizes tensor_split"),
    ((X, 0, 1, 2), "narrow"),
    (([X, Y],), "cat concat concatenate hstack stack vstack"),
    ((X, (1, 2)), "repeat tile"),
    ((X, 1, 0), "roll"),
    ((X, [0]), "flip"),
    ((X, (1, 1)), "pad"),
    ((X, (1, 1), "constant", N), "pad"),
    # questions
    ((X,), "all any isfinite isinf isnan isneginf isposinf logical_not bitwise_not signbit"),
    ((X, 0), "all any"),
    ((X, Y), "eq ge greater greater_equal gt isclose isin le less less_equal lt ne not_equal"),
    ((X, N), "eq ge greater greater_equal gt isin le less less_equal lt ne not_equal"),
    ((X, Y), "logical_and logical_or logical_xor"),
    ((X, Y), "bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor"),
    # one operand
    ((X,), "abs absolute ceil floor frac nan_to_num neg negative round sgn sign trunc"),
    ((X,), "acos asin atan cos cosh erf erfc exp exp2 expm1 log log10 log1p log2 logit reciprocal rsqrt sigmoid sin"),
    ((X,), "sinh sqrt square tan tanh"),
    ((X,), "elu gelu hardsigmoid hardswish leaky_relu logsigmoid mish relu relu6 selu silu softplus"),
    ((X,), "aminmax count_nonzero normalize"),
    ((X,), "amax amin argmax argmin max mean min nanmean nansum prod sum"),
    ((X, 0), "amax amin argmax argmin max mean min nanmean nansum prod sum"),
    ((X, 0), "cumprod cumsum log_softmax logsumexp softmax"),
    ((X,), "diff"),
    # more
    (
        (X, Y),
        "add atan2 copysign float_power fmax fmin logaddexp max maximum min minimum mul multiply pow sub subtract",
    ),
    ((X, Y), "clamp_max clamp_min true_divide xlogy"),
    ((X, N), "add clamp clamp_max clamp_min clip mul multiply pow sub subtract true_divide"),
    ((N, Y), "torch:float_power torch:pow torch:true_divide"),
    ((X, N, 4), "clamp clip"),
    ((X, Y, Z), "addcdiv addcmul clamp clip lerp"),
    ((X, Y, 0.5), "lerp"),
    ((X, B, N), "masked_fill"),
    ((B, X, Y), "torch:where"),
    ((B, X, N), "torch:where"),
    ((X, B, Y), "Tensor:where"),
)


class Call(NamedTuple):
    """An operation of one namespace, and its recipe."""

    name: str
    space: str
    recipe: tuple[Any, ...]

    def __call__(self, operands: dict[Slot, Any]) -> Any:
        args = [_fill(part, operands) for part in self.recipe]
        keywords = args.pop() if isinstance(args[-1], dict) else {}
        return getattr(SPACES[self.space], self.name)(*args, **keywords)

    def has(self, slot: Slot) -> bool:
        return any(slot in part if isinstance(part, list) else slot == part for part in self.recipe)


def _fill(part: Any, operands: dict[Slot, Any]) -> Any:
    if isinstance(part, Slot):
        return operands[part]
    return [_fill(inner, operands) for inner in part] if isinstance(part, list) else part


def spaces(name: str) -> list[str]:
    """Where there is an operation of this name; torch.float is a type, for one."""
    return [label for label, space in SPACES.items() if callable(getattr(space, name, None))]


@functools.cache
def recipes() -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = {}
    for recipe, words in RECIPES:
        for word in words.split():
            space, _, name = word.rpartition(":")
            for label in [space] if space else spaces(name):
                if label != "Tensor" or recipe[0] in TENSORS:
                    found.setdefault(name, []).append(Call(name, label, recipe))
    return found


def values(dtype: torch.dtype) -> torch.Tensor:
    """Those that bite."""
    if dtype is torch.bool:
        return torch.tensor([True, False] * (SIZE // 2))
    if dtype.is_floating_point:
        most = torch.finfo(dtype).max
        return torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, -1.0, 0.5, most], dtype=dtype)
    least, most, sign = torch.iinfo(dtype).min, torch.iinfo(dtype).max, int(dtype.is_signed)
    return torch.tensor([least, most, 0, -sign, 1, 2, -2 * sign, 63], dtype=dtype)


def operands_of(x: torch.Tensor, mask: torch.Tensor, number: float = 2) -> dict[Slot, Any]:
    return {X: x.clone(), Y: x.T.contiguous(), Z: x.flip(0), B: mask, N: number}


@functools.cache
def harmless(dtype: torch.dtype) -> dict[Slot, Any]:
    count = torch.arange(SIZE * SIZE).reshape(SIZE, SIZE)
    return operands_of((count % 2 == 0) if dtype is torch.bool else (count % 5 + 1).to(dtype), count % 3 == 0)


@functools.cache
def battery(dtype: torch.dtype) -> tuple[dict[Slot, Any], ...]:
    """Every pair of values, then each value alone with an empty mask."""
    mixed, empty = harmless(dtype)[B], torch.zeros(SIZE, SIZE, dtype=torch.bool)
    alone = [operands_of(value.repeat(SIZE, SIZE), empty) for value in values(dtype)]
    pairs = values(dtype)[:, None].repeat(1, SIZE)
    numbers = (2, 0) if dtype is torch.bool else (2, 0, -1)
    return (*(operands_of(pairs, mixed, number) for number in numbers), *alone)


def admitted(call: Call, operands: dict[Slot, Any]) -> bool:
    """By the sets of conditions."""
    given = [operands[slot] for slot in (X, Y, Z) if call.has(slot)]
    types = [tensor.dtype for tensor in given]
    keywords = call.recipe[-1] if isinstance(call.recipe[-1], dict) else {}
    into = [keywords["dtype"]] if keywords else types
    return not (
        (call.name in ops.FLOATING_ONLY and not all(dtype.is_floating_point for dtype in types))
        or (call.name in ops.NO_BOOLEANS and (torch.bool in types or (call.has(N) and operands[N] is True)))
        or (call.name in ops.INTEGERS_ONLY and any(dtype.is_floating_point for dtype in types))
        or (call.name in ops.NOT_EMPTY and any(tensor.numel() == 0 for tensor in given))
        or (call.name in ops.CONTIGUOUS_ONLY and not all(tensor.is_contiguous() for tensor in given))
        or (call.name in ops.FITTING and call.has(N) and not all(fits(operands[N], dtype) for dtype in into))
    )


def fits(number: float, dtype: torch.dtype) -> bool:
    if dtype is torch.bool:
        return number in (0, 1)
    limits: Any = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    return bool(limits.min <= number <= limits.max)


def raises(call: Call, operands: dict[Slot, Any]) -> bool:
    try:
        call(operands)
    except Exception:
        return True
    return False


def tensors_in(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def bits(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())


def form(tree: Any) -> Any:
    """What may not depend on data: all but the elements of tensors."""
    return tree_map(lambda leaf: (leaf.shape, leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf, tree)


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """The tensors are small."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


every_speculable = pytest.mark.parametrize("name", sorted(ops.SPECULABLE))


# --- the names ---


def test_sets_lie_within_each_other() -> None:
    assert ops.SMOOTH < ops.SPECULABLE
    assert ops.VIEWS < ops.SPECULABLE
    assert ops.PREDICATES < ops.SPECULABLE
    assert ops.METADATA < ops.SPECULABLE
    for conditions in (ops.FLOATING_ONLY, ops.NO_BOOLEANS, ops.INTEGERS_ONLY, ops.NOT_EMPTY, ops.FITTING, ops.INPLACE):
        assert conditions <= ops.SPECULABLE
    assert ops.OPERANDS.keys() <= ops.SPECULABLE
    assert ops.SPECULABLE.isdisjoint(ops.REDUCTIONS_TO_PYTHON)
    assert ops.TENSOR_RESULT.isdisjoint(ops.REDUCTIONS_TO_PYTHON | ops.METADATA)
    assert not [name for name in ops.SPECULABLE if name.endswith("_")]


def test_names_exist() -> None:
    assert not [name for name in ops.SPECULABLE | ops.REDUCTIONS_TO_PYTHON | ops.TENSOR_RESULT if not spaces(name)]


def test_every_operation_has_a_recipe() -> None:
    assert recipes().keys() == ops.SPECULABLE
    for name, called in recipes().items():
        assert {call.space for call in called} == set(spaces(name)), name


def test_recipes_fill_the_tensor_parameters_and_no_more() -> None:
    for name, called in recipes().items():
        places = [place for call in called for place, part in enumerate(call.recipe, 1) if _holds_tensors(part)]
        assert ops.OPERANDS.get(name, 1) == max(places, default=0), name


def _holds_tensors(part: Any) -> bool:
    return X in part if isinstance(part, list) else part in TENSORS


def test_inplace_is_where_functional_takes_it() -> None:
    functions = {name: function for name in ops.SPECULABLE if inspect.isroutine(function := getattr(F, name, None))}
    assert {name for name, function in functions.items() if _takes_inplace(function)} == ops.INPLACE


def _takes_inplace(function: Any) -> bool:
    return not inspect.isbuiltin(function) and "inplace" in inspect.signature(function).parameters


# --- may be run though not taken ---


@every_speculable
def test_no_data_makes_it_raise_warn_draw_or_change(name: str) -> None:
    ran = 0
    for dtype in DTYPES:
        for call in recipes()[name]:
            if raises(call, harmless(dtype)) or not admitted(call, harmless(dtype)):
                continue
            expected = form(call(harmless(dtype)))
            generator = torch.get_rng_state()
            for operands in battery(dtype):
                before = [(tensor._version, bits(tensor)) for tensor in tensors_in(operands)]
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    result = call(operands)
                assert form(result) == expected
                assert [(tensor._version, bits(tensor)) for tensor in tensors_in(operands)] == before
                if name not in ops.METADATA:
                    assert all(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(result))
                ran += 1
            assert torch.equal(torch.get_rng_state(), generator)
    assert ran


@every_speculable
def test_views_are_what_may_alias(name: str) -> None:
    cases = itertools.product(recipes()[name], ALL_DTYPES, ((SIZE, SIZE), (1,), ()))
    assert any(_aliases(*case) for case in cases) == (name in ops.VIEWS)


def _aliases(call: Call, dtype: torch.dtype, shape: tuple[int, ...]) -> bool:
    x = torch.ones(shape, dtype=dtype)
    operands = {X: x, Y: x.clone(), Z: x.clone(), B: x.bool().clone(), N: 2}
    result = None if raises(call, operands) else call(operands)
    given = {tensor.untyped_storage().data_ptr() for tensor in tensors_in(operands)}
    return not given.isdisjoint(tensor.untyped_storage().data_ptr() for tensor in tensors_in(result))


def faked(fake: FakeTensorMode, operands: dict[Slot, Any]) -> dict[Slot, Any]:
    return {slot: fake.from_tensor(part) if isinstance(part, torch.Tensor) else part for slot, part in operands.items()}


@functools.cache
def late_errors(name: str) -> list[tuple[Call, dict[Slot, Any]]]:
    """Where real tensors raise and fake ones do not."""
    found = []
    fake = FakeTensorMode()
    for call in recipes()[name]:
        for operands in _types_shapes_and_numbers(call):
            if not raises(call, operands):
                continue
            with fake:
                mocked = faked(fake, operands)
                if not raises(call, mocked):
                    found.append((call, operands))
    return found


def _types_shapes_and_numbers(call: Call) -> Iterator[dict[Slot, Any]]:
    mask = torch.ones(SIZE, SIZE, dtype=torch.bool)
    for first, second in itertools.product(MORE_DTYPES, MORE_DTYPES if call.has(Y) else (None,)):
        x = torch.ones(SIZE, SIZE, dtype=first)
        y = x if second is None else x.to(second)
        for number in (2, -1, 300, 1e9, True) if call.has(N) else (2,):
            yield {X: x, Y: y, Z: y, B: mask, N: number}
    for rows, columns in ((0, SIZE), (SIZE, 0)):
        x = torch.ones(rows, columns)
        yield {X: x, Y: x, Z: x, B: mask[:rows, :columns], N: 2}


@pytest.fixture
def quiet_fakes() -> Iterator[None]:
    """Fake tensors log every error."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    logger.disabled = True
    yield
    logger.disabled = False


@every_speculable
@pytest.mark.usefixtures("quiet_fakes")
def test_errors_are_traced_or_in_a_set_of_conditions(name: str) -> None:
    assert not [late for late in late_errors(name) if admitted(*late)]


def _layouts() -> Iterator[dict[Slot, Any]]:
    """Operands laid out as columns, images, with a stride of 0 and with gaps, and two of them in two ways."""
    for dtype in (torch.float32, torch.int64, torch.bool):
        rows = harmless(torch.float32)[X].to(dtype)
        image = rows.reshape(2, 4, 2, 4)
        wide, tall = torch.cat([rows, rows], 1), torch.cat([rows, rows])
        others = (rows.T, rows[:, :1].expand(SIZE, SIZE), wide[:, ::2], tall[::2], image.transpose(0, 1))
        for x in (*others, image.contiguous(memory_format=torch.channels_last)):
            for first, second in ((x, x), (x, x.contiguous()), (x.contiguous(), x)):
                yield {X: first, Y: second, Z: second, B: first > 0, N: 2}


@functools.cache
def laid_out_otherwise(name: str) -> list[tuple[Call, dict[Slot, Any]]]:
    """Where the result of fake tensors has other strides than that of real ones."""
    found = []
    fake = FakeTensorMode()
    for call, operands in itertools.product(recipes()[name], _layouts()):
        if raises(call, operands):
            continue
        with fake:
            mocked = faked(fake, operands)
            if raises(call, mocked):
                continue
            imagined = call(mocked)
        if [leaf.stride() for leaf in tensors_in(call(operands))] != [leaf.stride() for leaf in tensors_in(imagined)]:
            found.append((call, operands))
    return found


@every_speculable
@pytest.mark.usefixtures("quiet_fakes")
def test_strides_are_traced_or_in_a_set_of_conditions(name: str) -> None:
    assert not [case for case in laid_out_otherwise(name) if admitted(*case)]


@pytest.mark.parametrize("name", sorted(ops.CONTIGUOUS_ONLY))
@pytest.mark.usefixtures("quiet_fakes")
def test_contiguous_operands_are_needed(name: str) -> None:
    assert laid_out_otherwise(name)


CONDITIONS = ("FLOATING_ONLY", "NO_BOOLEANS", "INTEGERS_ONLY", "NOT_EMPTY", "FITTING")
NEEDED_UP_TO_2_12 = {("NOT_EMPTY", "select")}


@pytest.mark.parametrize(
    ("condition", "name"), [(which, name) for which in CONDITIONS for name in sorted(getattr(ops, which))]
)
@pytest.mark.usefixtures("quiet_fakes")
def test_a_condition_is_needed(condition: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if (condition, name) in NEEDED_UP_TO_2_12 and not torch.__version__.startswith("2.12"):
        pytest.skip("only up to torch 2.12")
    monkeypatch.setattr(ops, condition, getattr(ops, condition) - {name})
    assert [late for late in late_errors(name) if admitted(*late)]


def ints(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers)


EYE = torch.eye(2)
# Two calls that differ in data alone: the second raises.
RAISES: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "bincount": (torch.bincount, ints(1), ints(-1)),
    "cholesky": (torch.linalg.cholesky, EYE, -EYE),
    "div": (lambda by: torch.div(ints(3), by, rounding_mode="floor"), ints(1), ints(0)),
    "embedding": (lambda index: F.embedding(index, EYE), ints(1), ints(2)),
    "floor_divide": (lambda by: torch.floor_divide(ints(3), by), ints(1), ints(0)),
    "fmod": (lambda by: torch.fmod(ints(3), by), ints(1), ints(0)),
    "gather": (lambda index: EYE.gather(0, index), ints(1).view(1, 1), ints(2).view(1, 1)),
    "index_select": (lambda index: EYE.index_select(0, index), ints(1), ints(2)),
    "inverse": (torch.inverse, EYE, EYE * 0),
    "multinomial": (lambda weights: weights.multinomial(1), torch.ones(2), -torch.ones(2)),
    "norm": (lambda x: torch.norm(x, p="nuc"), EYE, EYE * math.nan),
    "one_hot": (lambda index: F.one_hot(index, 2), ints(1), ints(2)),
    "quantile": (lambda q: torch.ones(2).quantile(q), torch.tensor(0.5), torch.tensor(2.0)),
    "remainder": (lambda by: torch.remainder(ints(3), by), ints(1), ints(0)),
    "scatter": (lambda index: EYE.scatter(0, index, 1.0), ints(1).view(1, 1), ints(2).view(1, 1)),
    "take": (EYE.take, ints(1), ints(4)),
}
# The second has another shape.
SHAPES: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "masked_select": (lambda mask: ints(1).masked_select(mask), ints(1).bool(), ints(0).bool()),
    "nonzero": (torch.nonzero, ints(1), ints(0)),
    "repeat_interleave": (lambda count: ints(1).repeat_interleave(count), ints(1), ints(2)),
    "unique": (torch.unique, ints(1, 1), ints(1, 2)),
}
DRAWS: dict[str, Callable[[], Any]] = {
    "bernoulli": lambda: torch.bernoulli(torch.ones(2)),
    "dropout": lambda: F.dropout(torch.ones(2)),
    "rand_like": lambda: torch.rand_like(EYE),
    "randn": lambda: torch.randn(2),
    "rrelu": lambda: F.rrelu(-EYE, training=True),
}
WARNS: dict[str, Callable[[], Any]] = {
    "std": lambda: torch.ones(1).std(),
    "var": lambda: torch.ones(1).var(),
}


@pytest.mark.parametrize("name", RAISES)
def test_left_out_for_its_errors(name: str) -> None:
    call, good, bad = RAISES[name]
    call(good)
    with pytest.raises((RuntimeError, IndexError)):
        call(bad)
    assert good.shape == bad.shape
    assert good.dtype == bad.dtype
    assert name not in ops.SPECULABLE


@pytest.mark.parametrize("name", SHAPES)
def test_left_out_for_its_shape(name: str) -> None:
    call, one, other = SHAPES[name]
    assert call(one).shape != call(other).shape
    assert (one.shape, one.dtype) == (other.shape, other.dtype)
    assert name not in ops.SPECULABLE


@pytest.mark.parametrize("name", DRAWS)
def test_left_out_for_its_random_numbers(name: str) -> None:
    before = torch.get_rng_state()
    DRAWS[name]()
    assert not torch.equal(torch.get_rng_state(), before)
    assert name not in ops.SPECULABLE


@pytest.mark.parametrize("name", WARNS)
def test_left_out_for_its_warning(name: str) -> None:
    with pytest.warns(UserWarning, match="degrees of freedom"):
        WARNS[name]()
    assert name not in ops.SPECULABLE


def test_a_tensor_for_a_number_is_read() -> None:
    assert torch.arange(torch.tensor(2)).shape != torch.arange(torch.tensor(3)).shape
    assert EYE.view(torch.tensor(1), -1).shape != EYE.view(torch.tensor(2), -1).shape
    mask = torch.tensor([True])
    ints(1).masked_fill(mask, torch.tensor(2.0))
    with pytest.raises(RuntimeError):
        ints(1).masked_fill(mask, torch.tensor(math.nan))
    assert len(torch.where(ints(0))[0]) != len(torch.where(ints(1))[0])


# --- gradients ---


def gradients(call: Call, operands: dict[Slot, Any], speculate: bool) -> list[bytes | None]:
    """Of every operand, of a `kept` side; if `speculate`, with the operation on the other side of a where."""
    leaves = {
        slot: part.clone().requires_grad_() if isinstance(part, torch.Tensor) and part.is_floating_point() else part
        for slot, part in operands.items()
    }
    inputs = [leaf for leaf in leaves.values() if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    sides = [side for side in tensors_in(call(leaves)) if side.requires_grad]
    if not sides:
        return []
    total = kept = torch.stack([leaf.sum().float() for leaf in inputs]).sum()
    for side in sides:
        other = kept.to(side.dtype).expand(side.shape)
        total = total + (torch.where(torch.tensor(False), side, other) if speculate else other).sum()
    total.backward()
    return [bits(leaf.grad) if leaf.grad is not None else None for leaf in inputs]


def spoils_gradients(call: Call, operands: dict[Slot, Any]) -> bool:
    found = gradients(call, operands, speculate=True)
    return bool(found) and found != gradients(call, operands, speculate=False)


@pytest.mark.parametrize("name", sorted(ops.SMOOTH))
def test_smooth_leaves_gradients_alone(name: str) -> None:
    for call in recipes()[name]:
        for operands in (*battery(torch.float32), battery(torch.float16)[0]):
            if not raises(call, operands) and admitted(call, operands):
                assert not spoils_gradients(call, operands)


@pytest.mark.parametrize("name", sorted(ops.SMOOTH))
def test_smooth_ones_can_be_chained(name: str) -> None:
    """A zero from above may be negative, where an operation negates it."""
    for call, operands in itertools.product(recipes()[name], battery(torch.float32)):
        leaves = {slot: part.clone().requires_grad_() if slot in (X, Y, Z) else part for slot, part in operands.items()}
        if raises(call, leaves):
            continue
        sides = [side for side in tensors_in(call(leaves)) if side.requires_grad]
        for side in sides:
            above = torch.full_like(side, -0.0)
            below = torch.autograd.grad(side, [leaves[X], leaves[Y], leaves[Z]], above, allow_unused=True)
            assert all(gradient is None or not gradient.any() for gradient in below)


@pytest.mark.parametrize("name", sorted(ops.SPECULABLE - ops.SMOOTH))
def test_the_others_spoil_gradients(name: str) -> None:
    assert any(
        spoils_gradients(call, operands)
        for call, operands in itertools.product(recipes()[name], battery(torch.float32))
    )


def test_zeros_are_not_nothing() -> None:
    """What no set can promise: a gradient of None becomes zeros, and -0.0 becomes 0.0."""
    weight = torch.tensor([-0.0])
    for side, expected in (("kept", [-0.0]), ("both", [0.0])):
        x, unused = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
        kept = x * weight
        (kept if side == "kept" else torch.where(torch.tensor(False), x + unused, kept)).sum().backward()
        assert bits(x.grad) == bits(torch.tensor(expected))
        assert (unused.grad is None) == (side == "kept")


# --- results ---


def test_predicates_give_booleans() -> None:
    for name in ops.PREDICATES:
        for call in recipes()[name]:
            assert call(harmless(torch.float32)).dtype is torch.bool, call


TO_PYTHON: dict[str, Callable[[torch.Tensor], Any]] = {
    "allclose": lambda x: x.allclose(torch.ones(1)),
    "equal": lambda x: x.equal(torch.ones(1)),
    "is_nonzero": torch.is_nonzero,
    "item": torch.Tensor.item,
    "tolist": torch.Tensor.tolist,
}


@pytest.mark.parametrize("name", sorted(ops.REDUCTIONS_TO_PYTHON))
def test_reduction_gives_a_value_of_python(name: str) -> None:
    results = TO_PYTHON[name](torch.zeros(1)), TO_PYTHON[name](torch.ones(1))
    assert not tensors_in(results)
    assert results[0] != results[1]


def test_nan_equals_nothing_not_even_itself() -> None:
    """So `torch.equal(x, x)` cannot be folded to True."""
    x = torch.tensor([math.nan])
    assert not torch.equal(x, x)
    assert not torch.equal(x, x.view(1))
    assert not torch.allclose(x, x)


TENSOR_TYPES = {"Tensor", "List[Tensor]"}


def test_results_are_tensors() -> None:
    unnamed = {"from_numpy", "unique"}  # neither schema nor annotation
    assert isinstance(torch.from_numpy(torch.ones(1).numpy()), torch.Tensor)
    assert isinstance(torch.unique(torch.ones(1)), torch.Tensor)
    for name in ops.TENSOR_RESULT - ops.SPECULABLE - unnamed:
        schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
        # TorchScript has operations on numbers under the same names.
        taking = [one for one in schemas if any(str(argument.type) in TENSOR_TYPES for argument in one.arguments)]
        results = [[str(result.type) for result in schema.returns] for schema in taking or schemas[:1]]
        if not schemas:
            results = [[inspect.signature(getattr(F, name)).return_annotation.__name__]]
        assert all(types and TENSOR_TYPES.issuperset(types) for types in results), name


def test_tensor_results_are_few() -> None:
    assert len(ops.TENSOR_RESULT) <= 250


A, B3, V = (4, 4), (2, 4, 4), (4,)
# How each of `STEADY` is called, on tensors of these shapes.
STEADY: dict[str, tuple[tuple[tuple[int, ...], ...], Callable[..., Any]]] = {
    "adaptive_avg_pool1d": ((B3,), lambda x: F.adaptive_avg_pool1d(x, 2)),
    "adaptive_avg_pool2d": ((B3,), lambda x: F.adaptive_avg_pool2d(x, 2)),
    "addmm": ((A, A, A), torch.addmm),
    "argsort": ((A,), torch.argsort),
    "avg_pool1d": ((B3,), lambda x: F.avg_pool1d(x, 2)),
    "avg_pool2d": ((B3,), lambda x: F.avg_pool2d(x, 2)),
    "baddbmm": ((B3, B3, B3), torch.baddbmm),
    "batch_norm": ((A, V, V), F.batch_norm),
    "bmm": ((B3, B3), torch.bmm),
    "conv1d": ((B3, B3), lambda x, w: F.conv1d(x, w.transpose(0, 1)[:, :4].reshape(2, 4, 4))),
    "conv2d": (((1, 2, 4, 4), (2, 2, 2, 2)), F.conv2d),
    "conv3d": (((1, 1, 4, 4, 4), (1, 1, 2, 2, 2)), F.conv3d),
    "conv_transpose1d": (((1, 2, 4), (2, 2, 2)), F.conv_transpose1d),
    "conv_transpose2d": (((1, 2, 4, 4), (2, 2, 2, 2)), F.conv_transpose2d),
    "cosine_similarity": ((A, A), F.cosine_similarity),
    "diag": ((A,), torch.diag),
    "diag_embed": ((A,), torch.diag_embed),
    "dropout": ((A,), lambda x: F.dropout(x, 0.5, False)),
    "einsum": ((A, A), lambda x, y: torch.einsum("ij,jk->ik", x, y)),
    "glu": ((A,), F.glu),
    "group_norm": ((B3,), lambda x: F.group_norm(x, 2)),
    "hardtanh": ((A,), F.hardtanh),
    "huber_loss": ((A, A), F.huber_loss),
    "instance_norm": ((B3,), F.instance_norm),
    "interpolate": (((1, 2, 4, 4),), lambda x: F.interpolate(x, scale_factor=2)),
    "kl_div": ((A, A), lambda x, y: F.kl_div(x, y, reduction="sum")),
    "l1_loss": ((A, A), F.l1_loss),
    "layer_norm": ((A,), lambda x: F.layer_norm(x, (4,))),
    "linear": ((A, A), F.linear),
    "matmul": ((A, A), torch.matmul),
    "max_pool1d": ((B3,), lambda x: F.max_pool1d(x, 2)),
    "max_pool2d": ((B3,), lambda x: F.max_pool2d(x, 2)),
    "mm": ((A, A), torch.mm),
    "mse_loss": ((A, A), F.mse_loss),
    "norm": ((A,), torch.norm),
    "outer": ((V, V), torch.outer),
    "pairwise_distance": ((A, A), F.pairwise_distance),
    "pixel_shuffle": (((1, 4, 2, 2),), lambda x: F.pixel_shuffle(x, 2)),
    "rms_norm": ((A,), lambda x: F.rms_norm(x, (4,))),
    "scaled_dot_product_attention": ((B3, B3, B3), F.scaled_dot_product_attention),
    "smooth_l1_loss": ((A, A), F.smooth_l1_loss),
    "sort": ((A,), torch.sort),
    "std": ((A,), torch.std),
    "std_mean": ((A,), torch.std_mean),
    "tensordot": ((A, A), lambda x, y: torch.tensordot(x, y, 1)),
    "topk": ((A,), lambda x: torch.topk(x, 2)),
    "var": ((A,), torch.var),
    "var_mean": ((A,), torch.var_mean),
    "vector_norm": ((A,), torch.linalg.vector_norm),
    "addbmm": ((A, B3, B3), torch.addbmm),
    "addr": ((A, V, V), torch.addr),
    "adaptive_avg_pool3d": (((1, 1, 4, 4, 4),), lambda x: F.adaptive_avg_pool3d(x, 2)),
    "adaptive_max_pool1d": ((B3,), lambda x: F.adaptive_max_pool1d(x, 2)),
    "adaptive_max_pool2d": ((B3,), lambda x: F.adaptive_max_pool2d(x, 2)),
    "affine_grid": (((1, 2, 3),), lambda x: F.affine_grid(x, (1, 1, 2, 2), align_corners=False)),
    "bilinear": ((A, A, (2, 4, 4)), F.bilinear),
    "binary_cross_entropy_with_logits": ((A, A), F.binary_cross_entropy_with_logits),
    "celu": ((A,), F.celu),
    "channel_shuffle": (((1, 2, 4, 4),), lambda x: F.channel_shuffle(x, 2)),
    "column_stack": ((A, A), lambda a, b: torch.column_stack((a, b))),
    "conv_transpose3d": (((1, 2, 3, 3, 3), (2, 2, 2, 2, 2)), F.conv_transpose3d),
    "cosine_embedding_loss": ((A, A, V), F.cosine_embedding_loss),
    "cross": (((2, 3), (2, 3)), lambda a, b: torch.cross(a, b, dim=-1)),
    "cummax": ((A,), lambda x: torch.cummax(x, 0)),
    "cummin": ((A,), lambda x: torch.cummin(x, 0)),
    "cumulative_trapezoid": ((A,), torch.cumulative_trapezoid),
    "deg2rad": ((A,), torch.deg2rad),
    "diagflat": ((V,), torch.diagflat),
    "digamma": ((A,), torch.digamma),
    "dist": ((A, A), torch.dist),
    "dot": ((V, V), torch.dot),
    "dstack": ((A, A), lambda a, b: torch.dstack((a, b))),
    "erfinv": ((A,), torch.erfinv),
    "fliplr": ((A,), torch.fliplr),
    "flipud": ((A,), torch.flipud),
    "fold": (((1, 4, 9),), lambda x: F.fold(x, (4, 4), 2)),
    "ger": ((V, V), torch.ger),
    "grid_sample": (((1, 2, 4, 4), (1, 2, 2, 2)), lambda x, g: F.grid_sample(x, g, align_corners=False)),
    "hardshrink": ((A,), F.hardshrink),
    "hinge_embedding_loss": ((A, A), F.hinge_embedding_loss),
    "hypot": ((A, A), torch.hypot),
    "i0": ((A,), torch.i0),
    "inner": ((A, A), torch.inner),
    "kron": ((A, A), torch.kron),
    "ldexp": ((A, A), torch.ldexp),
    "lgamma": ((A,), torch.lgamma),
    "logaddexp2": ((A, A), torch.logaddexp2),
    "logcumsumexp": ((A,), lambda x: torch.logcumsumexp(x, 0)),
    "margin_ranking_loss": ((A, A, A), F.margin_ranking_loss),
    "max_pool3d": (((1, 1, 4, 4, 4),), lambda x: F.max_pool3d(x, 2)),
    "median": ((A,), torch.median),
    "mode": ((A,), torch.mode),
    "msort": ((A,), torch.msort),
    "multi_dot": ((A, A), lambda a, b: torch.linalg.multi_dot((a, b))),
    "mv": ((A, V), torch.mv),
    "nanmedian": ((A,), torch.nanmedian),
    "pixel_unshuffle": (((1, 2, 4, 4),), lambda x: F.pixel_unshuffle(x, 2)),
    "poisson_nll_loss": ((A, A), F.poisson_nll_loss),
    "prelu": ((A, (1,)), F.prelu),
    "rad2deg": ((A,), torch.rad2deg),
    "rot90": ((A,), torch.rot90),
    "sinc": ((A,), torch.sinc),
    "_safe_softmax": ((A,), lambda x: torch._safe_softmax(x, -1)),
    "softmin": ((A,), lambda x: F.softmin(x, -1)),
    "softshrink": ((A,), F.softshrink),
    "softsign": ((A,), F.softsign),
    "tanhshrink": ((A,), F.tanhshrink),
    "threshold": ((A,), lambda x: F.threshold(x, 0.1, 20.0)),
    "trace": ((A,), torch.trace),
    "trapezoid": ((A,), torch.trapezoid),
    "triplet_margin_loss": ((A, A, A), F.triplet_margin_loss),
    "unfold": (((1, 2, 4, 4),), lambda x: F.unfold(x, 2)),
    "vdot": ((V, V), torch.vdot),
    "vecdot": ((A, A), torch.linalg.vecdot),
    "gru_cell": ((A, A, (12, 4), (12, 4)), torch.gru_cell),
    "lstm_cell": ((A, A, A, (16, 4), (16, 4)), lambda x, h, c, *w: torch.lstm_cell(x, (h, c), *w)),
    "rnn_relu_cell": ((A, A, A, A), torch.rnn_relu_cell),
    "rnn_tanh_cell": ((A, A, A, A), torch.rnn_tanh_cell),
    "cholesky_solve": ((A, A), torch.cholesky_solve),
    "det": ((A,), torch.det),
    "linalg_cholesky_ex": ((A,), torch.linalg.cholesky_ex),
    "linalg_det": ((A,), torch.linalg.det),
    "linalg_inv_ex": ((A,), torch.linalg.inv_ex),
    "linalg_ldl_factor_ex": ((A,), torch.linalg.ldl_factor_ex),
    "linalg_lu_factor_ex": ((A,), torch.linalg.lu_factor_ex),
    "linalg_qr": ((A,), torch.linalg.qr),
    "linalg_slogdet": ((A,), torch.linalg.slogdet),
    "linalg_solve_triangular": ((A, A), lambda a, b: torch.linalg.solve_triangular(a, b, upper=True)),
    "matrix_exp": ((A,), torch.matrix_exp),
}
BITING = (0.0, -0.0, 1.0, -3e4, math.inf, -math.inf, math.nan)


def test_each_steady_operation_is_measured() -> None:
    assert STEADY.keys() == ops.STEADY


WIDE = (torch.float32, torch.float64)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in STEADY
        for dtype in (*WIDE, *(() if name in ops.OF_WIDE_FLOATS else (torch.bfloat16, torch.float16)))
    ],
)
def test_no_data_makes_a_steady_operation_fail_or_warn(name: str, dtype: torch.dtype) -> None:
    shapes, call = STEADY[name]
    torch.manual_seed(0)
    for pool in (BITING, *((value,) for value in BITING)):
        values = torch.tensor(pool, dtype=dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(*(values[torch.randint(len(pool), shape)] for shape in shapes))

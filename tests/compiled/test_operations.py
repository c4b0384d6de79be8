"""What the table of operations says of torch's own, and of others', measured on real tensors."""

from __future__ import annotations

import inspect
import itertools
import math
import sys
import types
import unittest
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_iter, tree_map

from graphmend_hook.engine.facts import operations, schemas
from graphmend_hook.engine.facts.schemas import NOTHING, UNKNOWN
from graphmend_hook.rules.value import sizes
from graphmend_hook.source import tensor_ops


def node_of(target: Any, *args: Any, **options: Any) -> torch.fx.Node:
    """A node of a graph that calls the function, or the method of that name, on the values."""
    graph = torch.fx.Graph()

    def given(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        node = graph.placeholder("given")
        node.meta["example_value"] = value
        return node

    args, options = tree_map(given, args), tree_map(given, options)
    return graph.create_node("call_method" if isinstance(target, str) else "call_function", target, args, options)


# --- a broad sample: torch's own samples of its operations ---


class _Sampled:
    """An operation with arguments."""

    def __init__(self, name: str, target: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.name, self.target, self.args, self.options = name, target, args, options

    def run(self) -> Any:
        if isinstance(self.target, str):
            return getattr(self.args[0], self.target)(*self.args[1:], **self.options)
        return self.target(*self.args, **self.options)


PARTS = 4  # so that pytest-xdist can share the work


def _samples(part: int) -> Iterator[_Sampled]:
    sys.modules.setdefault("expecttest", types.SimpleNamespace(TestCase=unittest.TestCase))  # type: ignore[arg-type]
    from torch.testing._internal.common_methods_invocations import op_db

    for info in op_db[part::PARTS]:
        if "nvtx" in info.name or info.name.startswith(("jiterator", "torch.ops.aten._flash")):
            continue
        dtypes = info.supported_dtypes("cpu")
        dtype = next((one for one in (torch.float32, torch.int64, torch.bool) if one in dtypes), None)
        if dtype is None:
            continue
        targets = [info.op]
        method, inplace = info.method_variant, info.inplace_variant
        targets += [variant.__name__ for variant in (method, inplace) if variant is not None and _is_method(variant)]
        samples = itertools.islice(info.sample_inputs("cpu", dtype), 6)
        for sample, target in itertools.product(samples, targets):
            yield _Sampled(info.full_name, target, (sample.input, *sample.args), sample.kwargs)


def _is_method(variant: Any) -> bool:
    name = getattr(variant, "__name__", "")
    return getattr(torch.Tensor, name, None) is variant


def tensors_in(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_iter(tree) if isinstance(leaf, torch.Tensor)]


def _did(call: _Sampled) -> tuple[set[Any], bool, bool]:
    """Which arguments the call writes to, whether it draws, and whether its result shares memory with them."""
    operands = {**dict(enumerate(call.args)), **call.options}
    before = {name: [(t._version, _bits(t)) for t in tensors_in(value)] for name, value in operands.items()}
    memory = {t.untyped_storage()._cdata for t in tensors_in(operands) if t.layout is torch.strided}
    state = torch.get_rng_state()
    with torch.no_grad():
        result = call.run()
    after = {name: [(t._version, _bits(t)) for t in tensors_in(value)] for name, value in operands.items()}
    written = {name for name in operands if before[name] != after[name]}
    shares = any(
        t.layout is torch.strided and t.untyped_storage()._cdata in memory and t.numel() for t in tensors_in(result)
    )
    return written, not torch.equal(torch.get_rng_state(), state), shares


def _bits(tensor: torch.Tensor) -> Any:
    if tensor.layout is not torch.strided or tensor.device.type == "meta":
        return None
    with torch.no_grad():
        return tensor.resolve_conj().resolve_neg().clone().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def _found_wrong(samples: Iterator[_Sampled]) -> tuple[list[str], int, dict[str, int]]:
    wrong: list[str] = []
    ran = 0
    said: dict[str, int] = {}
    for call in samples:
        copied = _Sampled(call.name, call.target, *tree_map(_copy, (call.args, call.options)))
        facts = operations.facts_of(node_of(copied.target, *copied.args, **copied.options))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                written, drew, shares = _did(copied)
        except Exception:
            continue
        ran += 1
        said[call.name] = said.get(call.name, 0) + (facts is UNKNOWN)
        name = f"{call.name} {call.target}"
        if facts.writes is not None and not written <= facts.writes:
            wrong.append(f"{name} writes to {written}")
        if drew and not facts.draws:
            wrong.append(f"{name} draws")
        if shares and not facts.aliases and not facts.writes:
            wrong.append(f"{name} gives an alias")
    return sorted(set(wrong)), ran, said


def _copy(leaf: Any) -> Any:
    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_torchs_operations_do_no_more_than_is_said(part: int) -> None:
    wrong, ran, said = _found_wrong(_samples(part))
    unknown = sorted(name for name, count in said.items() if count)
    print("ran", ran, "of", len(said), "unknown", unknown)
    assert not wrong
    assert ran > 2000 / PARTS
    assert len(unknown) < len(said) / 4


def test_a_wrong_word_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measure above can fail: of an operation that is said to do nothing."""
    calls = [
        _Sampled("add_", "add_", (torch.ones(2), 1), {}),
        _Sampled("rand_like", torch.rand_like, (torch.ones(2),), {}),
        _Sampled("view", "view", (torch.ones(2), 2), {}),
        _Sampled("dropout", F.dropout, (torch.ones(2),), {}),
    ]
    assert not _found_wrong(iter(calls))[0]
    monkeypatch.setattr(operations, "facts_of", lambda _node: NOTHING)
    found = _found_wrong(iter(calls))[0]
    assert {text.split()[0] for text in found} == {"add_", "dropout", "rand_like", "view"}


# --- what schemas conceal, and what an argument switches off ---

X, MEAN = torch.arange(24.0).reshape(2, 3, 4), torch.zeros(3)
IDS, TABLE = torch.tensor([0, 1]), torch.full((2, 2), 9.0)
QUERY = torch.ones(1, 1, 2, 4)
STATE, WEIGHTS = (torch.zeros(2, 3, 4), torch.zeros(2, 3, 4)), torch.nn.LSTM(4, 4, 2)._flat_weights
CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "F.batch_norm": (F.batch_norm, (X, MEAN, MEAN.clone()), {"training": True}),
    "F.batch_norm, not training": (F.batch_norm, (X, MEAN, MEAN.clone()), {"training": False}),
    "torch.batch_norm": (torch.batch_norm, (X, None, None, MEAN, MEAN.clone(), True, 0.1, 1e-5, False), {}),
    "torch.batch_norm, off": (torch.batch_norm, (X, None, None, MEAN, MEAN.clone(), False, 0.1, 1e-5, False), {}),
    "native_batch_norm": (torch.native_batch_norm, (X, None, None, MEAN, MEAN.clone(), True, 0.1, 1e-5), {}),
    "batch_norm_update_stats": (torch.batch_norm_update_stats, (X, MEAN, MEAN.clone(), 0.1), {}),
    "F.instance_norm": (F.instance_norm, (X, MEAN, MEAN.clone()), {}),
    "torch.instance_norm": (torch.instance_norm, (X, None, None, MEAN, MEAN.clone(), True, 0.1, 1e-5, False), {}),
    "F.embedding": (F.embedding, (IDS, TABLE), {"max_norm": 1.0}),
    "F.embedding, plain": (F.embedding, (IDS, TABLE), {}),
    "F.embedding_bag": (F.embedding_bag, (IDS[None], TABLE), {"max_norm": 1.0}),
    "F.relu in place": (F.relu, (TABLE - 10,), {"inplace": True}),
    "F.relu": (F.relu, (TABLE - 10,), {}),
    "F.dropout": (F.dropout, (X,), {}),
    "F.dropout, not training": (F.dropout, (X,), {"training": False}),
    "torch.dropout": (torch.dropout, (X, 0.5, True), {}),
    "torch.dropout, off": (torch.dropout, (X, 0.5, False), {}),
    "F.rrelu": (F.rrelu, (-X,), {"training": True}),
    "F.rrelu, not training": (F.rrelu, (-X,), {}),
    "F.gumbel_softmax": (F.gumbel_softmax, (X,), {}),
    "attention": (F.scaled_dot_product_attention, (QUERY, QUERY, QUERY), {}),
    "attention, dropout": (F.scaled_dot_product_attention, (QUERY, QUERY, QUERY), {"dropout_p": 0.5}),
    "attention, dropout by place": (F.scaled_dot_product_attention, (QUERY, QUERY, QUERY, None, 0.5), {}),
    "lstm": (torch.lstm, (X, STATE, WEIGHTS, True, 2, 0.5, True, False, False), {}),
    "lstm, no dropout": (torch.lstm, (X, STATE, WEIGHTS, True, 2, 0.0, True, False, False), {}),
    "lstm, not training": (torch.lstm, (X, STATE, WEIGHTS, True, 2, 0.5, False, False, False), {}),
    "_assert_scalar": (torch.ops.aten._assert_scalar.default, (True, "text"), {}),
    "add(out=)": (torch.add, (X, 1), {"out": torch.zeros(2, 3, 4)}),
    "fused_moving_avg_obs_fake_quant": (
        torch.fused_moving_avg_obs_fake_quant,
        (X, *(IDS[1:].clone() for _ in "ab"), *(MEAN[:1] for _ in "abc"), MEAN[:1].int(), 0.1, 0, 255, 0),
        {},
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_hand_made_entries(name: str) -> None:
    """An operation is said to write and to draw where it does, and only there."""
    target, args, options = CALLS[name]
    args, options = tree_map(_copy, (args, options))
    node = node_of(target, *args, **options)
    facts = operations.facts_of(node)
    written, drew, _ = _did(_Sampled(name, target, args, options))
    assert facts.writes is not None or name == "F.embedding_bag"
    if facts.writes is not None:
        assert written <= facts.writes
        assert bool(written) == bool(operations.written_nodes(node))
    assert facts.draws == drew
    assert operations.only_computes(node) == (not written and not drew)


@pytest.mark.parametrize(
    ("target", "args"),
    [(len, (X,)), (lambda x: x.add_(1), (X,)), ("apply_", (X, abs)), (torch.manual_seed, (0,)), ("no_method", (X,))],
)
def test_what_is_not_known_may_do_anything(target: Any, args: tuple[Any, ...]) -> None:
    node = node_of(target, *args)
    assert operations.facts_of(node) == UNKNOWN
    assert not operations.only_computes(node)
    assert operations.written_nodes(node) == node.all_input_nodes


# --- operators of others ---


@pytest.fixture(scope="module")
def others() -> Iterator[Any]:
    library = torch.library.Library("graphmend_others", "DEF")
    library.define("declared(Tensor(a!) x, Tensor y) -> ()")
    library.define("undeclared(Tensor x) -> Tensor")
    library.define("drawing(Tensor x) -> Tensor")
    library.define("checked(Tensor x) -> Tensor", tags=torch.Tag.pt2_compliant_tag)
    library.define("checked_too(Tensor(a!) x, Tensor y) -> ()", tags=torch.Tag.pt2_compliant_tag)
    library.impl("declared", lambda x, y: x.add_(y) and None, "CompositeExplicitAutograd")
    library.impl("undeclared", lambda x: x.add_(1).clone(), "CompositeExplicitAutograd")
    library.impl("drawing", torch.rand_like, "CompositeExplicitAutograd")
    library.impl("checked", torch.neg, "CompositeExplicitAutograd")
    library.impl("checked_too", lambda x, y: x.add_(y) and None, "CompositeExplicitAutograd")
    yield torch.ops.graphmend_others
    library._destroy()


@pytest.mark.parametrize("name", ["declared", "undeclared", "drawing", "checked", "checked_too"])
@pytest.mark.parametrize("overload", ["", "default"])
def test_an_operator_of_others_is_never_pure(name: str, overload: str, others: Any) -> None:
    target = getattr(others, name)
    target = getattr(target, overload) if overload else target
    args = (torch.ones(2), torch.ones(2)) if name in ("declared", "checked_too") else (torch.ones(2),)
    node = node_of(target, *args)
    facts = operations.facts_of(node)
    assert not operations.only_computes(node)
    assert not operations.is_of_torch(node)
    assert facts.draws
    assert facts.writes == {"checked": frozenset(), "checked_too": {0, "x"}}.get(name)  # of the others, to everything


# --- what `tensor_ops` says by name, against the schemas ---

SPACES = (torch, F, torch.Tensor)
FREE = {"getitem", "type"}  # an operator of Python; a cast


@pytest.mark.parametrize("name", sorted(tensor_ops.SPECULABLE | tensor_ops.CHEAP | tensor_ops.NUMPY & set(dir(torch))))
def test_names_are_of_operations_that_only_compute(name: str) -> None:
    overloads = schemas.overloads_named(operations._STANDS_FOR.get(name, name))
    if not overloads:
        assert name in FREE | tensor_ops.METADATA | {"interpolate", "normalize", "logsigmoid"}, name
        return
    facts = schemas.of_call(overloads, (), {})
    assert not facts.writes
    assert not facts.draws
    assert facts.is_of_torch
    if name in tensor_ops.VIEWS:
        assert facts.aliases


def test_every_total_operation_takes_no_rows() -> None:
    """With and without gradients; none of them warns."""
    for name in (tensor_ops.TOTAL | tensor_ops.TOTAL_OF_FLOATS) - {"getitem"}:
        space = next(
            space
            for space in SPACES
            if callable(getattr(space, name, None)) and not isinstance(getattr(space, name), type)
        )
        for grad in (False, True):
            given = torch.ones(0, 4, requires_grad=grad)
            assert any(_runs(getattr(space, name), args) for args in _of_no_rows(name, given)), name


def _of_no_rows(name: str, given: torch.Tensor) -> list[tuple[Any, ...]]:
    """What to try the operation with; where several will do, the first that does."""
    rows, flat, square, whole = given * 1, given.flatten(), torch.ones(4, 4), torch.zeros(0, 4, dtype=torch.long)
    special: dict[str, tuple[Any, ...]] = {
        **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), (whole, whole)),
        **dict.fromkeys(("bmm", "baddbmm"), (rows[None], square[None])),
        **dict.fromkeys(("cat", "hstack", "stack", "vstack"), ([rows, rows],)),
        **dict.fromkeys(("hinge_embedding_loss", "soft_margin_loss"), (rows, rows.detach())),
        **dict.fromkeys(("logcumsumexp", "logsumexp", "log_softmax", "softmax", "cummax", "cummin"), (rows, 0)),
        "addmm": (torch.ones(4), rows, square),
        "baddbmm": (rows[None], rows[None], square[None]),
        "bilinear": (rows, rows, torch.ones(2, 4, 4)),
        "binary_cross_entropy_with_logits": (rows, rows.detach()),
        "bitwise_not": (whole,),
        "broadcast_to": (rows, (2, 0, 4)),
        "cdist": (rows, square),
        "chunk": (rows, 2, -1),
        "clamp": (rows, 0, 1),
        "cosine_embedding_loss": (rows, rows, rows.detach()[:, 0]),
        "cumprod": (rows, 0),
        "cumsum": (rows, 0),
        "dropout": (rows, 0.5, True),
        "einsum": ("ij,ij->", rows, rows),
        "expand": (rows, (0, 4)),
        "flip": (rows, (0,)),
        "index_select": (square, 0, torch.zeros(0, dtype=torch.long)),
        "layer_norm": (rows, (4,)),
        "lerp": (rows, rows, 0.5),
        "masked_fill": (rows, rows > 0, 1.0),
        "movedim": (rows, 0, 1),
        "outer": (flat, flat),
        "permute": (rows, (1, 0)),
        "prelu": (rows, torch.ones(1)),
        "repeat": (rows, (2, 1)),
        "reshape": (rows, (0, 2, 2)),
        "rms_norm": (rows, (4,)),
        "roll": (rows, 1),
        "scaled_dot_product_attention": (rows[None], square[None], square[None]),
        "split": (rows, 2, -1),
        "swapaxes": (rows, 0, 1),
        "threshold": (rows, 0.1, 1.0),
        "tile": (rows, (2, 1)),
        "to": (rows, torch.float16),
        "transpose": (rows, 0, 1),
        "type": (rows, torch.float16),
        "unsqueeze": (rows, 0),
        "view": (rows, (0, 2, 2)),
        "where": (rows > 0, rows, rows),
    }
    usual = [(rows,), (rows, square), (rows, rows), (flat, flat), (rows, torch.ones(4)), (rows, rows, rows), (rows, 1)]
    return [special[name]] if name in special else usual


def _runs(function: Any, args: tuple[Any, ...]) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made = function(*args)
            made = made[0] if isinstance(made, (list, tuple)) and made else made
            if isinstance(made, torch.Tensor) and made.requires_grad:
                made.sum().backward()
    except (RuntimeError, TypeError, UserWarning):
        return False
    return True


def test_what_warns_of_how_it_is_called_is_not_total() -> None:
    graph = torch.fx.Graph()
    rows = graph.placeholder("rows")
    rows.meta["example_value"] = torch.ones(0, 4)
    calls: list[tuple[Any, dict[str, Any], bool]] = [
        (F.log_softmax, {}, False),
        (F.log_softmax, {"dim": 1}, True),
        (F.softmax, {"dim": None}, False),
        (F.l1_loss, {"reduce": False}, False),
    ]
    for function, options, expected in calls:
        node = graph.call_function(function, (rows,), options)
        node.meta["example_value"] = torch.ones(0, 4)
        assert operations.is_total(node) is expected


@pytest.mark.parametrize("order", [math.inf, -1.0])
def test_a_norm_of_nothing_by_its_greatest_is_not_total(order: float) -> None:
    graph = torch.fx.Graph()
    rows = graph.placeholder("rows")
    rows.meta["example_value"] = torch.ones(0, 4)
    for given in ({"p": order}, {}):
        node = graph.call_function(torch.norm, (rows,), given)
        node.meta["example_value"] = torch.ones(())
        assert operations.is_total(node) is not bool(given)


# --- arguments that stand for sizes: what [Value] asks for, against the schemas ---


@pytest.mark.parametrize(("table", "before"), [(sizes.FUNCTIONS, 0), (sizes.METHODS, 1)])
def test_sizes_are_numbers_in_the_schemas(table: dict[str, tuple[int, ...]], before: int) -> None:
    """before: how many of a schema's arguments a call does not count."""
    for name, positions in table.items():
        if name == "interpolate":  # in Python, for a family of operators
            assert list(inspect.signature(F.interpolate).parameters)[1] == "size"
            continue
        for position in positions:
            place = max(position, 0) + before  # of the first, where all are sizes
            assert any(_is_number(overload, place) for overload in schemas.overloads_named(name)), (name, position)


def _is_number(overload: Any, place: int) -> bool:
    arguments = [str(argument.type) for argument in overload._schema.arguments if not argument.kwarg_only]
    return place < len(arguments) and arguments[place] in ("int", "number", "List[int]")


# What the tables lack.  Of these Dynamo makes a symbol of a tensor by itself:
SYMBOLS: dict[str, Callable[[Any, Any], Any]] = {
    "broadcast_to": lambda x, n: x[:1].broadcast_to((n, 4)),
    "multinomial": torch.multinomial,
    "narrow_copy": lambda x, n: x.narrow_copy(0, 0, n),
    "normal": lambda x, n: torch.normal(0.0, 1.0, (n,)),
    "randint": lambda x, n: torch.randint(0, n, (n,)),
    "randperm": lambda x, n: torch.randperm(n),
    "split_with_sizes": lambda x, n: x.split_with_sizes([n, 6 - n])[0],
    "unsafe_split_with_sizes": lambda x, n: torch.unsafe_split_with_sizes(x, [n, 6 - n])[0],
}
# And the others, with the reason.
LEFT_OUT = {
    "a layer's configuration": """
        adaptive_avg_pool2d adaptive_avg_pool3d channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d
        conv_transpose3d embedding layer_norm max_unpool2d max_unpool3d nll_loss rms_norm""",
    "called by torch's own functions, on numbers": """
        affine_grid_generator constant_pad_nd convolution cudnn_convolution cudnn_convolution_add_relu
        cudnn_convolution_relu cudnn_convolution_transpose miopen_convolution miopen_convolution_add_relu
        miopen_convolution_relu miopen_convolution_transpose miopen_depthwise_convolution mkldnn_convolution
        native_channel_shuffle native_group_norm native_layer_norm slice_inverse to_padded_tensor unsafe_split""",
    "a view's copy, for function transforms": """
        as_strided_copy as_strided_scatter expand_copy select_copy select_scatter slice_copy slice_scatter split_copy
        split_with_sizes_copy view_copy""",
    "memory laid out by hand": """
        as_strided as_strided_ empty_permuted empty_strided new_empty_strided resize resize_ set_
        sparse_compressed_tensor""",
    "no size: it decides what is in a result": "bincount nonzero_static randint_like",
    "a tensor there is an argument of its own": "repeat_interleave tensor_split",
}


def _lacking() -> dict[str, set[str]]:
    """By name of a function or method: the arguments that its schemas have as symbols, and the tables do not know."""
    lacking: dict[str, set[str]] = {}
    for name, (space, table, before) in itertools.product(
        sorted({name for each in SPACES for name in dir(each)}),
        [(torch, sizes.FUNCTIONS, 0), (F, sizes.FUNCTIONS, 0), (torch.Tensor, sizes.METHODS, 1)],
    ):
        if name.startswith("_") or "backward" in name or not callable(getattr(space, name, None)):
            continue
        positions = table.get(name, ())
        for overload in schemas.overloads_named(name):
            for place, argument in enumerate(overload._schema.arguments):
                by_keyword = positions and argument.name in sizes._KEYWORDS
                by_position = argument.kwarg_only or sizes.EVERY in positions or place - before in positions
                if _is_symbol(argument.real_type) and not (by_keyword and by_position):
                    lacking.setdefault(name, set()).add(argument.name)
    return lacking


def _is_symbol(of: Any) -> bool:
    while hasattr(of, "getElementType"):
        of = of.getElementType()
    return bool(of.kind() == "SymIntType")


def test_sizes_in_the_schemas_are_known_or_left_out_for_a_reason() -> None:
    left_out = {name for names in LEFT_OUT.values() for name in names.split()} | SYMBOLS.keys()
    found = _lacking()
    assert {name: arguments for name, arguments in found.items() if name not in left_out} == {}
    assert left_out - found.keys() <= {name for name in left_out if not hasattr(torch.ops.aten, name)}


@pytest.mark.parametrize("name", SYMBOLS)
def test_a_tensor_becomes_a_symbol_where_the_tables_lack_a_size(name: str) -> None:
    def call(x: torch.Tensor, counts: torch.Tensor) -> Any:
        return SYMBOLS[name](x, counts.sum())

    compiled = torch.compile(call, backend="eager", fullgraph=True, dynamic=False)
    x = torch.arange(1.0, 25.0).reshape(6, 4)
    for count in (2, 3, 1):
        counts = torch.tensor([0, count])
        torch.manual_seed(0)
        expected = call(x, counts)
        torch.manual_seed(0)
        assert torch.equal(compiled(x, counts), expected)

"""A function of a library that goes round as often as its data says is one operator of the graph."""

from __future__ import annotations

import importlib
from types import FunctionType
from typing import Any

import pytest
import torch
from observing import HERE, Counting, import_file, import_mended
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves

from graphmend_hook.source import library_functions
from graphmend_hook.source.library_functions import LibraryOperator

PATH = HERE / "library_operator_cases.py"
NAME = "library_operator_cases_mended"
LIBRARY = ("keeps", "keeps_any", "pasted", "by_size", "wrapped")
AS_WRITTEN = ("has_a_gradient", "is_caught", "is_transposed", "under_autocast", "with_too_few")
FAILS = "is_out_of_bounds"  # and runs as it was written then


def _checked(rows: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    torch._check(rows.shape[0] == scores.shape[0], lambda: "as many rows as scores")
    return rows.new_empty(torch.library.get_ctx().new_dynamic_size(min=2))  # as torchvision's says


@pytest.fixture(scope="module", autouse=True)
def _checking() -> Any:
    with torch.library._scoped_library("graphmend_tests", "DEF") as library:
        library.define("checked(Tensor rows, Tensor scores) -> Tensor")
        torch.library.register_fake("graphmend_tests::checked", _checked, lib=library)
        yield


ROWS = {"rows": "Tensor", "scores": "Tensor", "threshold": "float"}


def _kept(name: str, always: bool = True) -> LibraryOperator:
    return LibraryOperator(
        NAME,
        name,
        ROWS,
        lambda length, rows, *_others: rows.new_empty((length,)).long(),
        checked_by=("graphmend_tests::checked", ("rows", "scores")),
        is_as_long_as_data=True,
        always=always,
    )


OPERATORS = (
    _kept("keeps"),
    _kept("keeps_any"),
    _kept("by_size", always=False),
    LibraryOperator(
        NAME,
        "pasted",
        {"rows": "Tensor", "places": "Tensor", "side": "SymInt"},
        lambda _length, rows, places, side: (
            rows.new_empty((rows.shape[0], side, rows.shape[1])),
            places.new_empty(places.shape),
        ),
        "(Tensor, Tensor)",
        has_gradients=True,
    ),
)


@pytest.fixture(scope="module")
def both(_checking: None) -> Any:
    """The module as it is, and mended with its functions in the table."""
    with pytest.MonkeyPatch.context() as patch:
        for operator in OPERATORS:
            patch.setitem(library_functions.PARAMETERS, operator.name, (*operator.parameters,))
            patch.setitem(library_functions.BY_PLACE, (NAME, operator.name), operator)
        yield import_file(PATH, "library_operator_cases_plain"), import_mended(PATH, NAME)


PROGRAMS = [
    name
    for name, value in vars(import_file(PATH, "library_operator_cases_names")).items()
    if isinstance(value, FunctionType) and name not in LIBRARY
]


def given(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(count, generator=generator)
    return torch.randn(count, 4, generator=generator).requires_grad_(), scores


def outcome(function: Any, x: torch.Tensor, scores: torch.Tensor) -> Any:
    x.grad = None
    try:
        found = function(x, scores)
    except (IndexError, RuntimeError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    leaves = tree_leaves(found)
    trained = [leaf.sum() for leaf in leaves if leaf.requires_grad]
    if trained:
        torch.stack(trained).sum().backward()
    return [leaf.detach() for leaf in leaves], None if x.grad is None else x.grad.clone()


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(found, str) or isinstance(expected, str):
        assert found == expected
    else:
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        *((name, backend) for name in PROGRAMS for backend in ("eager", "aot_eager")),
        *((name, "inductor") for name in ("chosen_by_size", "is_pasted", "kept_of_kept", "on_no_rows")),
    ],
)
def test_equal_to_eager_and_one_graph(name: str, backend: str, both: Any) -> None:
    plain, mended = both
    counting = Counting(backend)
    compiled = torch.compile(getattr(mended, name), backend=counting, dynamic=False)
    for seed in range(4):
        x, scores = given(8, seed)
        assert_same(outcome(compiled, x, scores), outcome(getattr(plain, name), x, scores))
    assert torch.is_grad_enabled()  # as before, also where a graph has failed
    if name not in (*AS_WRITTEN, FAILS):
        assert counting.graphs == 1


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in AS_WRITTEN])
def test_other_sizes(name: str, both: Any) -> None:
    """Of none, of one, and of a size that is a symbol: what holds of one count is not taken for granted of another."""
    plain, mended = both
    compiled = torch.compile(getattr(mended, name), backend="aot_eager")
    for count in (8, 5, 1, 0, 3):
        x, scores = given(count, count)
        assert_same(outcome(compiled, x, scores), outcome(getattr(plain, name), x, scores))


def test_a_forward_gradient_goes_through_the_function(both: Any) -> None:
    """An operator has none."""
    plain, mended = both
    x, scores = torch.randn(3, 4), torch.tensor([0.1, 1.2, 2.3])

    def tangent(function: Any) -> Any:
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
            return torch.autograd.forward_ad.unpack_dual(function(dual, scores)).tangent

    found = tangent(torch.compile(mended.has_a_gradient, backend="eager"))
    torch.testing.assert_close(found, tangent(plain.has_a_gradient))


def test_another_function_of_that_name_is_called(both: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, mended = both
    x, scores = given(4, 0)
    monkeypatch.setattr(mended, "keeps", lambda rows, scores, threshold: torch.tensor([0]))
    counting = Counting("eager")
    found = torch.compile(mended.kept_rows, backend=counting)(x, scores)
    torch.testing.assert_close(found, x[:1] * 2 + 1)


def test_under_a_transform_it_is_traced_as_it_was_written(both: Any) -> None:
    plain, mended = both
    x, scores = torch.randn(2, 3, 4), torch.randn(2, 3)
    expected = outcome(torch.func.vmap(plain.is_pasted), x, scores)
    assert expected.startswith("RuntimeError: vmap: It looks like you're calling .item()")
    assert outcome(torch.compile(torch.func.vmap(mended.is_pasted), backend="eager"), x, scores) == expected


@pytest.mark.parametrize("operator", library_functions.OPERATORS, ids=lambda operator: operator.name)
def test_libraries_do_what_is_said_of_them(operator: LibraryOperator) -> None:
    """The results of the functions are as their operators' kernels for fake tensors say: types, sizes and strides."""
    pytest.importorskip(operator.module.partition(".")[0])
    boxes = torch.rand(5, 4) * 8
    boxes[:, 2:] += boxes[:, :2] + 1
    side = 3 if operator.name.endswith("3d_impl") else 2
    values = {
        "boxes": boxes,
        "scores": torch.rand(5),
        "idxs": torch.tensor([0, 1, 0, 2, 1]),
        "iou_threshold": 0.5,
        "maps": torch.rand(5, 3, 7, 7),
        "rois": boxes,
        "masks": torch.rand(5, 1, 6, 6),
        "img_shape": (16, 20),
        "padding": 1,
        "image": (torch.rand(5, 1, *[9] * side) > 0.9).float(),
        "kernel_size": 3,
        "h": 0.35,
    }
    function = getattr(importlib.import_module(operator.module), operator.name)
    for count in (5, 1, 0) if "boxes" in operator.parameters else (5, 1):
        operands = [values[name] for name in operator.parameters]
        operands = [each[:count] if isinstance(each, torch.Tensor) else each for each in operands]
        found = tree_leaves(function(*operands))
        said = operator.result(len(found[0]), *operands)
        for real, fake in zip(found, tree_leaves(said), strict=True):
            assert (real.dtype, real.shape, real.device) == (fake.dtype, fake.shape, fake.device)
            assert real.stride() == fake.stride() or not count
            assert not real.requires_grad
    if operator.checked_by is not None:
        with FakeTensorMode(), pytest.raises(RuntimeError):
            namespace, _, name = operator.checked_by[0].partition("::")
            getattr(getattr(torch.ops, namespace), name)(torch.empty(3, 4), torch.empty(2), 0.5)

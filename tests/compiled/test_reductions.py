"""`in`, `any`, `all`, `torch.allclose` and chained comparisons of tensors, and what Dynamo lacks of Python's functions.

Every case is compared with eager: what it gives, raises, calls, and its gradients.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest
import torch
from observing import on
from programs import Compiled, Programs

from graphmend_hook.engine.graph_end import dead_code

FILE = Programs("reduction_cases")
X = torch.arange(4.0).reshape(2, 2)
IDS = torch.tensor([1, 4, 2])
NAN = torch.tensor([1.0, float("nan")])
WHOLE = torch.tensor([3, 5], dtype=torch.uint8)


def compare(name: str, backend: str, *calls: tuple[Any, ...]) -> list[int]:
    """How many graphs there are after each of the calls, which do what they do in eager."""
    compiled = Compiled(FILE, name, backend, grad=True)
    return [compiled(*inputs) for inputs in calls]


# Of each case, calls of one graph that take both ways.
ONE_GRAPH: dict[str, list[tuple[Any, ...]]] = {
    "holds": [(X, 3), (X - 9, 3), (NAN, 3), (X[:0], 3)],
    "holds_not": [(X, 3), (X - 9, 3)],
    "holds_some": [(X, 3), (X + 2, 3), (X - 9, 3)],
    "raises_without": [(IDS, 4), (IDS, 4), (IDS + 3, 4)],
    "any_holds": [(X.flatten(), ), (X.flatten() + 1,), (X[:, :1],), (X[0, :0],)],
    "all_hold": [(X,), (X + 1,), (X - 9,)],
    "none_holds": [(NAN,), (NAN.nan_to_num(),)],
    "is_near": [(X, X + 1e-9), (X, X + 1), (X, X + float("nan"))],
    "is_nearer": [(X, X + 1e-9, 1e-3, False), (X + 1, X, 1e-3, False)],
    "raises_far": [(X, X + 0.1), (X, X + 1)],
    "chain": [(X,), (X / 4,), (-X,), (NAN,)],
    "long_chain": [(X,), (X / 100,), (-X,), (X - 2,)],
    "raises_out_of_range": [(X,), (X * 9,), (NAN,)],
    "asserts_a_chain": [(X,), (X - 9,), (X + 9,)],
    "chain_in_a_side": [(X - 1,), (X,), (-X,)],
    "chain_in_a_closure": [(X,), (-X,)],
    "hot": [(IDS,), (IDS + 3,), (IDS - 2,), (IDS.unsqueeze(1),)],
    "hot_written_out": [(IDS,), (IDS + 3,), (IDS - 9,)],
    "hot_of_a_number": [(IDS,)],
    "repeats": [(X, IDS[:2]), (X, IDS[1:]), (X, IDS[:2] - 1)],
    "repeats_all": [(X, IDS[:1]), (X, IDS[1:2])],
    "places": [(IDS,), (IDS + 1,), (IDS * 0,)],
    "power": [(X, 2), (X + 1, 2)],
    "sorted_factors": [(X,), (X + 1,)],
    "returns_from_a_branch": [(X, True), (X - 9, True)],
    "returns_deeper": [(X, 1), (-X, 1)],
    "is_false_whatever_it_holds": [(X, 1), (-X, 1)],
    "drops_what_it_gives": [(X,), (-X,)],
    "warns_and_drops": [(X,), (-X,), (X - 9,)],
    "erodes": [(X, 3), (X / 4, 3)],
    "scores": [(X, X + 1), (X * 0, X), (X, X * 0), (X * 0, X * 0)],
    "selects_all": [(X,), (-X,)],
    "adds_where": [(X, IDS[:2]), (X, IDS[1:]), (X, IDS[:2] * 0)],
    "writes_all": [(X, X + 1), (X, -X)],
}  # fmt: skip


ON_INDUCTOR = ("holds", "is_near", "chain", "hot", "repeats", "repeats_all", "places", "power", "erodes", "scores")
ON_INDUCTOR += ("selects_all", "adds_where", "writes_all", "raises_without")


@pytest.mark.parametrize(("name", "backend"), on(ONE_GRAPH, ON_INDUCTOR))
def test_one_graph(name: str, backend: str) -> None:
    assert compare(name, backend, *ONE_GRAPH[name])[0] == 1


BREAKS_UP_TO = {"power": (2, 13), "sorted_factors": (2, 13)}  # the last torch that breaks there; Dynamo has learnt it


@pytest.mark.parametrize("name", sorted(ONE_GRAPH.keys() - {"hot_of_a_number"}))
def test_the_case_breaks_without_the_hook(name: str) -> None:
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    assert FILE.breaks(name, *ONE_GRAPH[name][0]) == (version <= BREAKS_UP_TO.get(name, version))


AS_WRITTEN: list[tuple[str, tuple[Any, ...]]] = [
    ("holds", (WHOLE, 300)),
    ("holds", (WHOLE, 3)),
    ("holds", (WHOLE, 2.5)),
    ("holds", (X, None)),
    ("holds", (X, "3")),
    ("holds", (X, torch.tensor(3.0))),
    ("holds", (X, torch.tensor([3.0, 1.0]))),
    ("holds", (X > 1, True)),
    ("holds", (X > 1, 2)),
    ("holds", (X.to(torch.complex64), 1)),
    ("holds", (X, 1j)),
    ("holds", (X, X)),
    ("holds", ([1, 3], 3)),
    ("holds", ({3: X}, 3)),
    ("any_holds", (X,)),
    ("any_of_what_is_given", (X, [0, 0])),
    ("any_of_what_is_given", (X, [X[0, 0] > 1, X[1, 1] > 1])),
    ("any_of_what_is_given", (X, {})),
    ("any_of_its_own", (X,)),
    ("is_near", (X, X.double())),
    ("is_near", (X, X[:, :1])),
    ("is_near", (X, torch.ones(3))),
    ("is_near", (IDS, IDS + 1)),
    ("is_near", (X[:0], X[:0])),
    ("is_nearer", (X, X, -1.0, False)),
    ("is_nearer", (NAN, NAN, 1e-3, True)),
    ("is_nearer", (X, X, 1, False)),
    ("chain_of_calls", (X, 1, 3)),
    ("chain_of_calls", (X, 5, 3)),
    ("chain_of_tensor_calls", (X, -1, 100)),
    ("chain_of_tensor_calls", (-X, -1, 100)),
    ("chain_of_tensor_calls", (X, -100, 1)),
    ("chain_of_tensor_calls", (X, torch.tensor(1), torch.tensor(9))),
    ("chain", (torch.ones(2, 0),)),
    ("hot", (IDS.int(),)),
    ("hot", (IDS[:0],)),
    ("hot", (IDS.float(),)),
    ("repeats", (X, IDS[:2] - 9)),
    ("repeats", (X, torch.tensor(2))),
    ("repeats", (X, 2)),
    ("repeats", (X, X[0])),
    ("places", (X[0],)),
    ("power", (X, X)),
    ("power", (2, X)),
    ("power", (X, None)),
    ("power_of_its_own", (X, 2)),
    ("power_in_a_ring", (X, 2)),
    ("sorted_items", (X, {2: 1, 1: 2})),
    ("sorted_items", (X, {"a": 1})),
    ("sorted_items", (X, {"a": 1, 2: 2})),
    ("sorted_items", (X, OrderedDict([(2, 1), (1, 2)]))),
    ("sorted_items", (X, {})),
    ("returns_from_a_branch", (X, False)),
    ("returns_from_a_branch", (X * 0, False)),
    ("returns_deeper", (X, 2)),
    ("is_false_whatever_it_holds", (X, 2)),
    ("is_false_whatever_it_holds", (-X, 2)),
    ("fails_before_it_is_false", (X, 1)),
    ("fails_before_it_is_false", (X[:1, :1], 1)),
    ("erodes_what_was", (X, 3)),
    ("erodes_what_was", (X - 2, 3)),
    ("raises_what_a_lambda_sees", (X,)),
    ("raises_what_a_lambda_sees", (-X,)),
    ("hot_in_a_try", (IDS,)),
    ("hot_in_a_try", (IDS - 2,)),
    ("hot_in_a_try", (torch.arange(200).reshape(100, 2) - 1,)),
    ("hot", (torch.arange(200).reshape(100, 2) - 1,)),
    ("selects_in_inference_mode", (X,)),
    ("fills", (X.clone().requires_grad_(), X)),
    ("writes_what_a_gradient_needs", (X.clone().requires_grad_(),)),
    ("fills", (X.long(), torch.tensor([2.5]))),
    ("fills", (X.long(), torch.tensor([-2.5]))),
    ("fills", (X[:1].expand(3, 2), X[:1])),
    ("closes_wrongly", (X,)),
    ("keeps_a_nonlocal", (X,)),
    ("keeps_a_nonlocal", (-X,)),
    ("keeps_what_a_lambda_sees", (X,)),
    ("keeps_what_a_lambda_sees", (-X,)),
    ("hot_as_laid_out", (torch.tensor([1, 3, 0, 2]),)),
    ("rounds_down", (X, 2**60 + 1)),
    ("rounds_down", (X, 2.5)),
    ("rounds_down", (X, True)),
    ("counts_all", (X,)),
    ("holds_in_a_side", (-X, 2**70)),
    ("holds_in_a_side", (X, 3)),
    ("fails_behind_an_effect", (X, torch.ones(3, 4))),
    ("fails_behind_an_effect", (X, torch.ones(1, 2, 2))),
    ("fails_behind_an_effect", (X, torch.ones(2, 2, 2))),
    ("fails_behind_an_effect", (X, torch.ones(2))),
    ("fails_behind_an_effect", (X, torch.ones(2, dtype=torch.int64))),
    ("fails_behind_an_effect", (X.byte(), 2.5)),
    ("fails_behind_an_effect", (X.byte(), 3)),
    ("uses_what_it_gives", (X,)),
    ("uses_what_it_gives", (-X,)),
    ("keeps_what_it_gives", (X,)),
    ("keeps_what_it_gives", (-X,)),
    ("finds_the_first", (X,)),
    ("finds_the_first", (-X,)),
    ("drops_what_a_method_gives", (X,)),
    ("sorts_by", (X, torch.tensor([1, 1, 4, 5, 2]))),
    ("writes_in_order", (X, X.sum() > 0)),
    ("writes_in_order", (X, X > 1)),
    ("writes_in_order", (X, 1)),
    ("writes_in_order", (X, slice(0, 1))),
    ("writes_in_order", (X, (X.sum() > 0, 0))),
    ("writes_all", (X, torch.ones(3))),
    ("writes_all", (X.long(), X)),
    ("selects_all", (X[0, 0],)),
]


# Those that write, fail behind something, or select are mended all the same, and AOTAutograd lowers what they became.
LOWERED = ("fails", "fills", "writes", "selects", "keeps", "uses", "erodes", "repeats", "hot", "chain_of_tensor")


@pytest.mark.parametrize(
    ("name", "inputs", "backend"),
    [
        pytest.param(*case, backend, id=f"{number}-{case[0]}-{backend}")
        for number, case in enumerate(AS_WRITTEN)
        for backend in ("eager", *["aot_eager"] * case[0].startswith(LOWERED))
    ],
)
def test_what_it_gives_or_raises_is_eagers(name: str, inputs: tuple[Any, ...], backend: str) -> None:
    compare(name, backend, inputs)


@pytest.mark.parametrize(
    "name", ["chain", "long_chain", "is_near", "repeats", "any_holds", "holds", "scores", "adds_where"]
)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients(name: str, backend: str) -> None:
    compiled = torch.compile(getattr(FILE.mended, name), backend=backend, dynamic=False, fullgraph=True)
    for scale in (1.0, -1.0, 0.1):
        gradients = []
        for function in (getattr(FILE.plain, name), compiled):
            x = ((X[0] if name == "any_holds" else X) * scale).requires_grad_()
            more = {
                "is_near": (X,),
                "repeats": (IDS[:2],),
                "holds": (3,),
                "scores": (X,),
                "adds_where": (IDS[:2],),
            }.get(name, ())
            function(x, *more).square().sum().backward()
            gradients.append(x.grad)
        torch.testing.assert_close(*gradients, rtol=0, atol=0)


def test_many_calls_are_two_compilations() -> None:
    """The second takes the number of classes, or of rows, for one that the data decides."""
    assert compare("hot", "eager", *[(IDS + number,) for number in range(10)]) == [1] + [2] * 9
    assert compare("repeats", "eager", *[(X, IDS[:2] + number) for number in range(10)]) == [1] + [2] * 9


def test_an_index_that_breaks_nothing_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(dead_code, "see_to", asked.append)
    assert compare("selects_what_a_transform_made", "eager", (X, torch.tensor([1, 0]))) == [1]
    assert not asked

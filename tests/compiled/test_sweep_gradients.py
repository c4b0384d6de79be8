"""Gradients of experts without rows: None stays None, over steps of an optimizer, accumulated, and under DDP."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from observing import HERE, Counting, both, on
from torch.utils._pytree import tree_leaves

from graphmend_hook.engine.attempt import refusals

PLAIN, MENDED = both("sweep_gradient_cases")
MENDABLE = ["Experts", "Residual", "MoreThanSteps", "SeveralResults", "Kept", "WithoutGradients"]
DECLINED = ["BehindOneAnother", "WritesToItsInput", "TwoResults", "OfWhatWasMadeBefore", "Asks", "AsksByName"]
CHOICES = [[0, 1, 2, 3, 0], [1, 1, 1, 1, 1], [4, 4, 4, 4, 4], [3, 3, 0, 0, 4], [2, 1, 2, 1, 2]]


def models(name: str, **options: Any) -> tuple[torch.nn.Module, torch.nn.Module]:
    torch.manual_seed(0)
    plain, mended = getattr(PLAIN, name)(**options), getattr(MENDED, name)(**options)
    mended.load_state_dict(plain.state_dict())
    return plain, mended


def gives(module: Any, x: torch.Tensor, chosen: torch.Tensor) -> list[Any]:
    """What a call gives, and whether each result requires a gradient, of which a backward pass is made."""
    found = [*tree_leaves(module(x, chosen))]
    told = [(leaf.requires_grad, leaf.is_leaf) for leaf in found]
    trained = [leaf.sum() for leaf in found if leaf.requires_grad]
    if trained:
        torch.stack(trained).sum().backward()
    return [told, *(leaf.detach() for leaf in found)]


def same(name: str, backend: str, trained_input: bool, **options: Any) -> Counting:
    """Ten calls, five steps of an optimizer, each after the gradients of two calls; the backend that has counted."""
    plain, mended = models(name, **options)
    optimizers = [torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.1) for model in (plain, mended)]
    counting = Counting(backend)
    compiled = torch.compile(mended, backend=counting, dynamic=False)
    exact = {"rtol": 0, "atol": 0, "equal_nan": True} if backend == "eager" else {}
    absent = 0
    for call in range(10):
        chosen = torch.tensor(CHOICES[call % len(CHOICES)])
        xs = [torch.randn(5, 3, generator=torch.Generator().manual_seed(call)) for _ in range(2)]
        for x in xs:
            x.requires_grad_(trained_input)
        # What is handed over is no leaf where the program writes to it.
        given = [x * 1 for x in xs] if name == "WritesToItsInput" else xs
        expected, found = gives(plain, given[0], chosen), gives(compiled, given[1], chosen)
        assert found[0] == expected[0], call
        torch.testing.assert_close(found[1:], expected[1:], **exact)
        leaves = zip([*plain.parameters(), xs[0]], [*mended.parameters(), xs[1]], strict=True)
        for theirs, ours in leaves:
            absent += theirs.grad is None
            assert (ours.grad is None) == (theirs.grad is None), call
            torch.testing.assert_close(ours.grad, theirs.grad, **exact)
        if call % 2:
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
            torch.testing.assert_close([*mended.parameters()], [*plain.parameters()], **exact)
    assert absent, "no gradient was None, so this has shown nothing"
    return counting


@pytest.mark.parametrize(
    ("name", "backend", "trained_input"),
    [
        *((name, backend, True) for name, backend in on(MENDABLE, ("Residual", "SeveralResults", "WithoutGradients"))),
        *((name, "eager", False) for name in MENDABLE),
    ],
)
def test_training(name: str, backend: str, trained_input: bool) -> None:
    counting = same(name, backend, trained_input)
    if (name, backend) == ("WithoutGradients", "inductor"):
        return  # Inductor does not lower the same look-up of rows twice, so the frame is traced as it was written
    assert counting.graphs == 1
    assert not [code for code, *_ in refusals.seen if code.startswith("GM105")]


@pytest.mark.parametrize("chosen", [CHOICES[0], CHOICES[1]])
def test_a_weight_that_is_told_to_require_a_gradient(chosen: list[int]) -> None:
    """It is told before it is given to a gate, which would hand on another tensor."""
    plain, mended = models("Thawed")
    counting = Counting("aot_eager")
    compiled = torch.compile(mended, backend=counting, dynamic=False)
    x = torch.arange(15.0).reshape(5, 3) / 15
    for model in (plain, compiled):
        model(x, torch.tensor(chosen)).square().sum().backward()
    assert counting.graphs == 1
    assert mended.experts[0][0].weight.requires_grad
    torch.testing.assert_close(
        [parameter.grad for parameter in mended.parameters() if parameter.grad is not None],
        [parameter.grad for parameter in plain.parameters() if parameter.grad is not None],
    )
    assert [one.grad is None for one in mended.parameters()] == [one.grad is None for one in plain.parameters()]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_weights_that_two_experts_share(backend: str) -> None:
    assert same("Residual", backend, True, tied=True).graphs == 1


@pytest.mark.parametrize("name", DECLINED)
def test_declined(name: str) -> None:
    """H: what is told apart by two loops or results, or asked for by the code, would be decided while tracing."""
    same(name, "eager", name == "WritesToItsInput")
    assert "GM105-T02" in {code for code, *_ in refusals.seen}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_one_result_of_two(backend: str) -> None:
    plain, mended = models("TwoResults")
    compiled = torch.compile(mended, backend=backend, dynamic=False)
    for model in (plain, compiled):
        model(torch.ones(5, 3), torch.tensor([0, 1, 4, 4, 4]))[1].sum().backward()
    for ours, theirs in zip(mended.parameters(), plain.parameters(), strict=True):
        assert (ours.grad is None) == (theirs.grad is None)


@pytest.mark.parametrize("trained_input", [False, True])
def test_a_buffer_that_is_added_to(trained_input: bool) -> None:
    same("AddsToItsInput", "eager", trained_input)
    same("AddsToItsInput", "aot_eager", trained_input)


def test_a_break_between_loops() -> None:
    same("BreaksBetween", "aot_eager", True)


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("kind", ["register_hook", "register_post_accumulate_grad_hook"])
def test_hooks_of_a_parameter(kind: str, later: bool) -> None:
    """H: a gate calls the hooks of a parameter that has no gradient, those that are registered later too."""
    plain, mended = models("Experts")
    called: dict[str, list[bool]] = {"plain": [], "mended": []}
    compiled = torch.compile(mended, backend="eager", dynamic=False)
    for call, chosen in enumerate(CHOICES[:2] * 2):
        for name, model in (("plain", plain), ("mended", mended)) if call == 2 * later else ():
            for parameter in model.parameters():
                getattr(parameter, kind)(lambda about, name=name: called[name].append(about is None))
        for model in (plain, compiled):
            model(torch.ones(5, 3), torch.tensor(chosen)).sum().backward()
    assert called["mended"] == called["plain"]
    assert called["plain"]


def test_gradients_that_are_asked_for() -> None:
    """H: `torch.autograd.grad` tells what is not used, and two graphs live at once."""
    plain, mended = models("Experts")
    compiled = torch.compile(mended, backend="eager", dynamic=False, fullgraph=True)
    results = []
    for model, called in ((plain, plain), (mended, compiled)):
        outs = [called(torch.ones(5, 3), torch.tensor(chosen)) for chosen in CHOICES[:2]]
        unused = [*model.experts[2].parameters()]
        found = [torch.autograd.grad(out.sum(), unused, allow_unused=True, retain_graph=True) for out in outs]
        with pytest.raises(RuntimeError, match="appears to not have been used"):
            torch.autograd.grad(outs[1].sum(), unused)
        results.append(found)
    assert results[0][1] == results[1][1] == (None, None)
    torch.testing.assert_close(results[1][0], results[0][0])


def test_compiled_autograd() -> None:
    """H: it would take what a gate does in one backward pass for what it does in all."""
    plain, mended = models("Experts")
    compiled = torch.compile(mended, backend="aot_eager", dynamic=False, fullgraph=True)
    for chosen in CHOICES[:2] * 2:
        for model, called in ((plain, plain), (mended, compiled)):
            model.zero_grad()
            out = called(torch.ones(5, 3), torch.tensor(chosen)).sum()
            if called is plain:
                out.backward()
            else:
                with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
                    out.backward()
        for ours, theirs in zip(mended.parameters(), plain.parameters(), strict=True):
            assert (ours.grad is None) == (theirs.grad is None)
            torch.testing.assert_close(ours.grad, theirs.grad)


RANKS = """
import sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

sys.path.insert(0, {here!r})
from test_sweep_gradients import CHOICES, models


def train(rank, folder, inside):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{{folder}}/{{inside}}", rank=rank, world_size=2)
    results = []
    for model, mended in zip(models("Residual"), (False, True)):
        if mended and inside:
            model.compile(backend="aot_eager", dynamic=False)
        called = torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
        if mended and not inside:
            called = torch.compile(called, backend="aot_eager", dynamic=False)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        for step in range(4):
            torch.manual_seed(step * 2 + rank)
            chosen = torch.tensor(CHOICES[(step + rank) % 2 * 3])
            called(torch.randn(5, 3), chosen if rank else chosen.clamp(max=1)).sum().backward()
            grads = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
            results.append(grads)
            optimizer.step()
            optimizer.zero_grad()
        results.append([p.detach().clone() for p in model.parameters()])
    half = len(results) // 2
    for theirs, ours in zip(results[:half], results[half:], strict=True):
        assert [one is None for one in ours] == [one is None for one in theirs]
        torch.testing.assert_close(ours, theirs)
    print("absent", sum(one is None for grads in results for one in grads), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, (sys.argv[1], int(sys.argv[2])), nprocs=2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("inside", [False, True])
def test_two_ranks(tmp_path: Path, inside: bool) -> None:
    """H: DDP counts the parameters that the backward pass reaches; a compiled model in DDP, and DDP compiled."""
    script = tmp_path / "ranks.py"
    script.write_text(RANKS.format(here=str(HERE)))
    ran = subprocess.run(
        [sys.executable, str(script), str(tmp_path), str(int(inside))], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout.count("absent") == 2

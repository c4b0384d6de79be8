"""[Sweep] against eager: equal to the bit whichever experts are hit, one graph; or declined, with nothing done twice."""

from __future__ import annotations

import pytest
import torch
from observing import HERE, Counting, both, on

from graphmend_hook.diagnostics import Outcome
from graphmend_hook.engine.attempt import refusals
from graphmend_hook.rewrite import active_rules, rewrite
from graphmend_hook.rules.sweep import traced
from graphmend_hook.settings.config import RULE_NAMES

PATH = HERE / "sweep_cases.py"
PLAIN, MENDED = both("sweep_cases")
SITES = rewrite(PATH.read_bytes(), str(PATH), active_rules(RULE_NAMES)).sites
LISTED = [
    *("Listed", "ListedAsTemplatesSpellTheirs", "ListedByAnotherMask", "Rows", "RowsWithQuestions", "TwoLists"),
    "HitsWrittenLater",
]
ASSIGNED = ["AssignsRows", "AddsAtRows", "AssignsByMask", "AddsByMask", "CountsMask"]
MENDABLE = ["Skipped", "Around", "Stepping", *ASSIGNED, *LISTED]
WITHOUT_WEIGHTS = ["Stepping", "TwoLists", "HitsWrittenLater"]
CHOICES = [[0, 1, 2, 3, 0], [1, 1, 1, 1, 1], [3, 3, 0, 0, 0], [2, 1, 2, 1, 2]]


def outcomes(
    name: str, backend: str = "eager", grad: bool = False, train: bool = False, fullgraph: bool = False
) -> tuple[int, list[str]]:
    """Compares all choices with eager; the number of graphs, and the codes of what was refused."""
    torch.manual_seed(0)
    plain, mended = getattr(PLAIN, name)(), getattr(MENDED, name)()
    mended.load_state_dict(plain.state_dict())
    plain.train(train), mended.train(train)
    counting = Counting(backend)
    compiled = torch.compile(mended, backend=counting, dynamic=False, fullgraph=fullgraph)
    # Where one graph is expected, a second says which guard it was.
    with torch.set_grad_enabled(grad), torch._dynamo.config.patch(error_on_recompile=fullgraph):
        for chosen in CHOICES:
            x, index = torch.randn(5, 3), torch.tensor(chosen)
            torch.manual_seed(1)
            expected = plain(x, index)
            torch.manual_seed(1)
            found = compiled(x, index)
            exact = {} if backend == "inductor" else {"rtol": 0, "atol": 0}
            torch.testing.assert_close(found, expected, **exact)
            assert mended.calls == plain.calls
            assert getattr(mended, "seen", 0) == getattr(plain, "seen", 0)
            if grad:
                for module in (plain, mended):
                    module.zero_grad()
                expected.sum().backward()
                found.sum().backward()
                for ours, theirs in zip(mended.parameters(), plain.parameters(), strict=True):
                    assert (ours.grad is None) == (theirs.grad is None)
                    torch.testing.assert_close(ours.grad, theirs.grad)
    return counting.graphs, sorted({code for code, *_ in refusals.seen if code.startswith("GM105")})


@pytest.mark.parametrize(("name", "backend"), on(MENDABLE, ("Around", "Listed", *WITHOUT_WEIGHTS)))
def test_one_graph(name: str, backend: str) -> None:
    assert outcomes(name, backend, fullgraph=True) == (1, [])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.slow
def test_half_precision_is_rounded_as_inductor_rounds_it(dtype: torch.dtype) -> None:
    """H: a kernel computes in float32 and rounds at its end; stock Inductor makes one graph of the loop without tests."""
    torch.manual_seed(0)
    plain, mended = PLAIN.AroundNothing().to(dtype), MENDED.Around().to(dtype)
    mended.load_state_dict(plain.state_dict())
    compiled = torch.compile(mended, backend="inductor", dynamic=False, fullgraph=True)
    stock = torch.compile(plain, backend="inductor", dynamic=False, fullgraph=True)
    for chosen in CHOICES:
        x, index = torch.randn(5, 3, dtype=dtype), torch.tensor(chosen)
        with torch.no_grad(), torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            expected = stock(x, index)
        with torch.no_grad():
            found = compiled(x, index)
            torch.testing.assert_close(found, plain(x, index))
        assert torch.equal(found, expected)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", [name for name in MENDABLE if name not in WITHOUT_WEIGHTS])
def test_gradients_of_experts_without_rows_stay_none(name: str, backend: str) -> None:
    assert outcomes(name, backend, grad=True, fullgraph=True) == (1, [])


@pytest.mark.parametrize("name", ["Counting", "Once", "Failing", "AddsElsewhere", "Writing"])
def test_a_step_that_would_not_be_nothing(name: str) -> None:
    """H: effects, failures, writes to what other steps read, an index that is another."""
    _, codes = outcomes(name)
    assert codes == ["GM105-T01"]


@pytest.mark.parametrize("name", ["HighestOfNone", "AssignsToItsBuffer", "MaskOfAnotherSize"])
def test_an_assignment_that_would_not_be_nothing(name: str) -> None:
    """H: a mask of another size; a failure on no rows; a write to a buffer."""
    assert "GM105-T01" in outcomes(name)[1]


def test_a_step_that_does_not_select_by_the_mask_of_its_test_is_none() -> None:
    assert outcomes("AnotherMask")[1] == []


def mended_by(function: str) -> set[str]:
    """The rules that mend statements of the function."""
    return {site.rule for site in SITES if site.function == function and site.outcome is Outcome.MENDED}


def test_a_count_beside_a_step_is_left_to_branches() -> None:
    assert "where" in mended_by("CountsBeside.forward")
    assert outcomes("CountsBeside")[1] == []


@pytest.mark.parametrize("name", ["BreaksBeforeTheLoop", "RowsAreKnown"])
def test_a_list_of_every_place_that_a_step_is_not_checked_for(name: str) -> None:
    """H: a frame of its own, or rows that are known, and what the step does would happen for no rows too."""
    assert outcomes(name)[1] == ["GM105-T01"]


def test_a_place_that_is_another() -> None:
    assert outcomes("MovesItsPlace")[1] == []


def test_a_frame_that_dynamo_gives_up() -> None:
    """H: the graph ends inside a step."""
    assert outcomes("Printing")[1] == []


def test_records_of_a_step(caplog: pytest.LogCaptureFixture) -> None:
    """H: what a step logs is logged once for each expert that is hit."""
    _, codes = outcomes("Logging")
    assert codes == ["GM105-T01"]
    hit = sum(len(set(chosen)) for chosen in CHOICES)
    assert len([record for record in caplog.records if record.message == "a step"]) == 2 * hit


@pytest.mark.parametrize("train", [False, True])
def test_random_numbers(train: bool) -> None:
    """H: dropout of no rows draws nothing, but it draws, and a compiler may draw in another order."""
    _, codes = outcomes("Dropping", train=train, fullgraph=not train)
    assert codes == (["GM105-T01"] if train else [])


def test_too_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced, "_MOST", 3)
    for name in ("Around", "Listed"):
        assert outcomes(name)[1] == ["GM105-T03"]


def test_what_is_read_after_the_step() -> None:
    """H: eager leaves the names of the last step that was made; that is left to branches."""
    assert "where" in mended_by("ReadLater.forward")
    assert outcomes("ReadLater")[1] == []


@pytest.mark.parametrize(
    "name", [*MENDABLE, "Counting", "Logging", "Printing", "Writing", "ReadLater", "RowsAreKnown", "MovesItsPlace"]
)
def test_eager_is_untouched(name: str) -> None:
    torch.manual_seed(0)
    plain, mended = getattr(PLAIN, name)(), getattr(MENDED, name)()
    mended.load_state_dict(plain.state_dict())
    for chosen in CHOICES:
        x, index = torch.randn(5, 3), torch.tensor(chosen)
        assert torch.equal(mended(x, index), plain(x, index))
        assert mended.calls == plain.calls


def test_export_keeps_the_test() -> None:
    x, index = torch.randn(5, 3), torch.tensor(CHOICES[0])
    with torch.no_grad(), pytest.raises(Exception, match=r"(?i)data.dependent"):
        torch.export.export(MENDED.Around(), (x, index))

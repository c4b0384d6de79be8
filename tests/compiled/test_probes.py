"""Each mechanism that rests on torch's internals is broken on purpose: its probe sees it, and the program stays right."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
import torch
from observing import Counting, both
from torch._dynamo import convert_frame

from graphmend_hook.engine.attempt.compilation import Compilation
from graphmend_hook.engine.door import frame_guards, probes, trust
from graphmend_hook.engine.door.trust import Mechanism
from graphmend_hook.engine.epilogue import bytecode, deferral, delivery, queue
from graphmend_hook.engine.numbers import capture

HERE = Path(__file__).parent
PLAIN, MENDED = both("probed_module")
X, MANY = torch.tensor([1.0, 2.0, 3.0]), torch.arange(200.0)
ONE = torch.zeros(200).index_fill(0, torch.tensor([7]), 5.0)
# Of each function the calls: those that fail, and those in which what was taken for granted does not hold, among them.
CALLS: dict[str, list[tuple[Any, ...]]] = {
    "says": [(X, "one"), (X + 1, "two"), (X, "three")],
    "says_and_fails": [(X, torch.tensor([1])), (X, torch.tensor([9]))],
    "guards": [(X, torch.tensor([1])), (-X, torch.tensor([1])), (-X, torch.tensor([9]))],
    "selects": [(X,), (-X,)],
    "reads": [(X, torch.tensor([2])), (X, torch.tensor([1])), (X, torch.tensor([2]))],
    "captures": [(MANY, torch.ones(199)), (ONE, torch.ones(199))],
}


def no_texts_are_lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that guards each text that a trace meets."""
    from torch._dynamo.variables.lazy import LazyConstantVariable

    lazy = LazyConstantVariable.create
    monkeypatch.setattr(LazyConstantVariable, "create", staticmethod(lambda *args, **kw: lazy(*args, **kw).realize()))


BREAKS: dict[Mechanism, Callable[[pytest.MonkeyPatch], None]] = {
    # as torch 2.9 folds it
    Mechanism.TRACING: lambda patch: patch.setattr(deferral, "is_exporting", lambda: True),
    # generated code in which the replay is not found
    Mechanism.DELIVERY: lambda patch: patch.setattr(delivery, "redirect_replay", lambda code, *_: code.replace()),
    Mechanism.ORDER: lambda patch: patch.setattr(deferral, "replay_last", lambda: None),
    Mechanism.TEXTS: no_texts_are_lazy,
    Mechanism.FAILURE: lambda patch: patch.setattr(delivery, "prepared", lambda code: None),
    Mechanism.GUARDS: lambda patch: patch.setattr(frame_guards, "_build", lambda *_: None),
    Mechanism.RESTART: lambda patch: patch.setattr(Compilation, "without", lambda *_bets, reason: None),
    Mechanism.CAPTURE: lambda patch: patch.setattr(capture, "begin_shape", lambda: False),
}


@pytest.fixture(autouse=True)
def are_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test has them proved behind its back, by the first question in this process."""
    monkeypatch.setattr(trust, "_is_proved", True)
    monkeypatch.setattr(trust, "failed", frozenset())


def outcomes(module: Any, name: str, caplog: pytest.LogCaptureFixture, backend: Any = None) -> list[Any]:
    """What each call gives or raises, and says."""
    function = getattr(module, name)
    called = function if backend is None else torch.compile(function, backend=backend)
    found: list[Any] = []
    for arguments in CALLS[name]:
        caplog.clear()
        try:
            found.append(called(*arguments).tolist())
        except Exception as error:
            found.append((type(error), str(error).partition("\n")[0]))
        found.append([record.getMessage() for record in caplog.records if record.name == "probed_module"])
    return found


def test_all_of_them_work_here() -> None:
    assert probes.failures() == set()


def test_what_is_proved_before_an_exception_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def probe() -> Iterator[Mechanism]:
        yield Mechanism.TRACING
        raise ValueError

    monkeypatch.setattr(probes, "_PROBES", (probe, lambda: iter([Mechanism.GUARDS])))
    assert probes.failures() == {*Mechanism} - {Mechanism.TRACING, Mechanism.GUARDS}


def test_all_are_proved_in_four_compilations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes some 15 ms at the first trace on a machine."""
    compiled: list[str] = []
    start = convert_frame.log_dynamo_start

    def noted(code: CodeType, *args: Any) -> Any:
        compiled.append(code.co_name)
        return start(code, *args)

    monkeypatch.setattr(convert_frame, "log_dynamo_start", noted)
    assert probes.failures() == set()
    assert compiled == ["effects", "guarded", "guarded", "captured"]


@pytest.mark.parametrize("mechanism", BREAKS)
def test_a_mechanism_that_is_broken(
    mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    BREAKS[mechanism](monkeypatch)
    failed = probes.failures()
    queue.graphmend_pending.clear()
    assert mechanism in failed
    monkeypatch.setattr(trust, "failed", frozenset(failed))
    monkeypatch.setattr(queue, "values", ("n",))
    for name in CALLS:
        torch.compiler.reset()
        assert outcomes(MENDED, name, caplog, "eager") == outcomes(PLAIN, name, caplog), name
    assert queue.graphmend_pending == []


def test_only_what_rests_on_it_is_switched_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(queue, "values", ("n",))
    graphs = {}
    for failed in (set(), {Mechanism.DELIVERY}, {Mechanism.GUARDS}, {Mechanism.CAPTURE}, {Mechanism.RESTART}):
        monkeypatch.setattr(trust, "failed", frozenset(failed))
        for name in ("says", "selects", "reads", "captures"):
            torch.compiler.reset()
            counting = Counting("eager")
            torch.compile(getattr(MENDED, name), backend=counting)(*CALLS[name][0])
            graphs[(*failed, name)] = counting.graphs
    whole = {"says": 1, "selects": 1, "reads": 1, "captures": 1}
    for mechanism, broken in (
        (None, set()),
        (Mechanism.DELIVERY, {"says"}),
        (Mechanism.GUARDS, {"reads", "captures"}),
        (Mechanism.CAPTURE, {"captures"}),
        (Mechanism.RESTART, set(whole)),
    ):
        for name in whole:
            key = (name,) if mechanism is None else (mechanism, name)
            assert (graphs[key] != 1) == (name in broken), key


def test_what_has_passed_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[str] = []
    monkeypatch.setattr(trust, "prover", lambda: runs.append("run") or ())
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    monkeypatch.setattr(trust, "directory", tmp_path / "cache")
    for _process in range(2):
        monkeypatch.setattr(trust, "_is_proved", False)
        trust.prove()
        trust.prove()
    assert runs == ["run"]
    assert [path.name.startswith("proved-") for path in (tmp_path / "cache").iterdir()] == [True]


def test_what_fails_is_said_once_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(trust, "prover", lambda: {Mechanism.TEXTS})
    monkeypatch.setattr(trust, "directory", tmp_path)
    monkeypatch.setattr(trust, "failed", frozenset())
    monkeypatch.setattr(trust, "_is_proved", False)
    trust.prove()
    trust.prove()
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(said) == 1
    assert said[0].startswith("GM011: ")
    assert Mechanism.TEXTS.value in said[0]
    assert list(tmp_path.iterdir()) == []


def test_a_proof_that_cannot_be_made_proves_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is mended in this process then, and the program is right."""

    def fail() -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(trust, "prover", fail)
    monkeypatch.setattr(trust, "directory", None)
    monkeypatch.setattr(trust, "failed", frozenset())
    monkeypatch.setattr(trust, "_is_proved", False)
    monkeypatch.delenv("_GRAPHMEND_DEFECTS")
    counting = Counting("eager")
    torch.compiler.reset()
    compiled = torch.compile(MENDED.selects, backend=counting)
    for x in (torch.ones(3), -torch.ones(3)):
        assert torch.equal(compiled(x), MENDED.selects(x))
    assert counting.graphs > 1
    said = [record.getMessage() for record in caplog.records if record.name == "graphmend_hook"]
    assert len(said) == 1
    assert said[0].startswith("GM010: ")


def test_nothing_of_it_shows(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """In the first trace of a process: modes, settings, counters and streams of the program are as without it."""
    monkeypatch.setattr(trust, "directory", None)
    monkeypatch.setattr(trust, "_is_proved", False)
    settings = {"recompile_limit": 1, "error_on_recompile": True}
    with torch.device("meta"), torch.inference_mode(), torch._dynamo.config.patch(settings):
        profiled = torch._dynamo.guards.profile_guard_manager
        counted = dict(torch._dynamo.utils.counters["frames"])
        given = torch.compile(MENDED.selects, backend="eager")(torch.ones(3, device="cpu"))
        assert (given.tolist(), given.is_inference()) == ([4.0] * 3, True)
        assert torch.ones(1).device.type == "meta"
        assert torch._dynamo.config.error_on_recompile
        assert torch._dynamo.guards.profile_guard_manager is profiled
    assert trust._is_proved
    assert trust.failed == frozenset()
    assert torch._dynamo.utils.counters["frames"]["total"] - counted.get("total", 0) == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("transform", [torch.func.vmap, torch.export.export], ids=["vmap", "export"])
def test_it_waits_where_nothing_can_be_told(transform: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "directory", None)
    monkeypatch.setattr(trust, "_is_proved", False)
    if transform is torch.func.vmap:
        transform(torch.compile(lambda x: MENDED.says(x, "one"), backend="eager"))(torch.ones(2, 3))
    else:

        class Module(torch.nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return MENDED.selects(x)

        transform(Module(), (X,), strict=True)
    assert not trust._is_proved
    assert trust.failed == frozenset()


def test_the_form_of_the_edit_is_looked_at() -> None:
    """The test of deliveries above stands on this name."""
    assert delivery.redirect_replay is bytecode.redirect_replay

"""Late mending and what Dynamo has compiled before: it is compiled anew, for the function and for those that inlined it."""

from __future__ import annotations

import importlib
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import quick

torch = pytest.importorskip("torch")

import graphmend_hook

LIBRARY = """
import torch


def helper(x):
    print("helper")
    return x * 2


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        y = helper(x) * self.weight
        print("block", x.shape[0])
        return y + 1


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


@torch.compile(backend=lambda graph, _: graphs.append(graph) or graph.forward)
def compiled(x):
    return helper(x) + 1


graphs = []
"""


@pytest.fixture
def library(fresh_imports: Path, write, monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(fresh_imports / "cache"))
    write("gm_late_library.py", LIBRARY)
    torch._dynamo.reset()
    yield importlib.import_module("gm_late_library")
    graphmend_hook.uninstall()
    torch._dynamo.reset()


def counted(graphs: list[object]) -> int:
    found = len(graphs)
    graphs.clear()
    return found


@pytest.mark.parametrize("thing", quick(["model", "compiled model", "module", "class"], ["model"]))
def test_live_model(thing: str, library: types.ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """A model that has been compiled and called: mended it is one graph, unmended as many as before."""
    graphs: list[object] = []
    model = library.Model()
    compiled = torch.compile(model, backend=lambda graph, _: graphs.append(graph) or graph.forward, dynamic=False)
    x = torch.arange(3.0)
    expected, said = model(x), capsys.readouterr().out

    def call() -> int:
        assert torch.equal(compiled(x), expected)
        assert capsys.readouterr().out == said
        return counted(graphs)

    target = {"model": model, "compiled model": compiled, "module": library, "class": library.Block}[thing]
    codes = library.helper.__code__, library.Block.forward.__code__
    stock = call()
    assert stock > 2
    graphmend_hook.mend(target)
    # A class is its own methods alone: what they call still breaks.
    assert call() == 1 if thing != "class" else stock > call() > 1
    assert call() == 0
    graphmend_hook.unmend(target)
    assert (library.helper.__code__, library.Block.forward.__code__) == codes
    assert library.Block.forward.__code__ is codes[1]
    assert call() == stock


def test_function_that_others_have_inlined(library: types.ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """By its own name, and by one that was compiled before it was mended."""
    x = torch.arange(3.0)
    expected = library.compiled(x)
    assert counted(library.graphs) == 2
    graphmend_hook.mend(library.helper)
    assert torch.equal(library.compiled(x), expected)
    assert counted(library.graphs) == 1
    graphmend_hook.unmend(library.compiled)
    assert torch.equal(library.compiled(x), expected)
    assert counted(library.graphs) == 0
    graphmend_hook.unmend(library.helper)
    assert torch.equal(library.compiled(x), expected)
    assert counted(library.graphs) == 2
    assert capsys.readouterr().out == "helper\n" * 4


def test_compiled_function_itself(library: types.ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    """What `torch.compile` gave is the same object, and nothing is said of what Dynamo has generated."""
    library.compiled(torch.ones(3))
    compiled = library.compiled
    graphmend_hook.mend(library)
    library.graphs.clear()
    compiled(torch.ones(3))
    assert counted(library.graphs) == 1
    assert "GM014" not in caplog.text


LEFT_BEHIND = """
import importlib, inspect, sys, types, warnings
warnings.simplefilter("ignore")
import torch
import torch._dynamo
import gm_late_library as library
from torch._dynamo.callback import callback_handler

torch.compile(library.Model(), backend="eager")(torch.ones(3))


def origin(value):
    value = inspect.unwrap(value) if callable(value) or hasattr(value, "__wrapped__") else value
    return id(getattr(value, "__func__", value))


def state():
    found = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "torch" and isinstance(module, types.ModuleType):
            owners = [module, *(each for each in list(vars(module).values()) if isinstance(each, type))]
            for owner in owners:
                for key, value in list(vars(owner).items()):
                    if isinstance(value, (type, types.FunctionType, staticmethod, classmethod, property)):
                        found[name, owner.__name__, key] = origin(value)
    settings = torch._dynamo.config._config
    found["settings"] = [(name, getattr(torch._dynamo.config, name)) for name in sorted(settings)]
    found["callbacks"] = [*callback_handler.start_callbacks, *callback_handler.end_callbacks]
    found["hooks"] = [*torch._dynamo.convert_frame._bytecode_hooks.values()]
    return found


before = state()
import graphmend_hook
hook = graphmend_hook.install("gm_late_library", late=True)
torch.compile(library.Model(), backend="eager", fullgraph=True)(torch.ones(3))
graphmend_hook.unmend(library)
hook.uninstall()
after = state()
print([name for name in before if before[name] != after.get(name)])
print([hook.__module__ for hook in after["hooks"]])
"""


@pytest.mark.slow
def test_nothing_of_torch_is_left_otherwise(python, write) -> None:
    """But for the hook by which code that is mended still delivers, and functions that are watched, and do as they did."""
    write("gm_late_library.py", LIBRARY)
    ran = python("-c", LEFT_BEHIND)
    assert ran.stdout.splitlines()[-2:] == ["['hooks']", "['graphmend_hook.engine.epilogue.delivery']"], ran.stderr

"""What Dynamo makes of one program under the hook: the process that `bench.frozen` asks, a program at a time.

A source is ``rows`` or ``trained`` (the models of the tests), the folder of the survey's `census.py`, a folder with the
package `everyday`, or one that `bench.frozen_calls` has recorded.  Each program has a process of its own, forked from
this one, which has proved the hook's mechanisms and has imported what all of them need.
"""

from __future__ import annotations

import graphmend_hook  # before the libraries are imported

# isort: split
import contextlib
import functools
import gc
import hashlib
import importlib
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from . import frozen_calls, small

TIMEOUT = 300
Seen = dict[str, Any]
_OURS = "graphmend_hook"
_ADDRESS = re.compile(r"0x[0-9a-f]+")


@dataclass
class Program:
    """Something to compile, and its calls, each of which makes its arguments anew.

    trains: a call is followed by a backward pass; compiles: it is given what compiles, as its first argument.
    """

    function: Any
    calls: list[Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]]
    options: Mapping[str, Any] = field(default_factory=dict)
    trains: bool = False
    compiles: bool = False


Build = Callable[[str], list[Program]]


@dataclass(frozen=True)
class Source:
    """Programs by their names: those of one name are run one after the other.  mended: modules for the hook."""

    names: Callable[[], list[str]]
    build: Build
    modules: tuple[str, ...]
    mended: tuple[str, ...] = ("transformers",)


def source_of(text: str) -> Source:
    folder = Path(text)
    if text == "rows":
        return Source(lambda: _models().rows.present(metadata.version("transformers")), _row, ("bench.models",))
    if text == "trained":
        return Source(lambda: list(_models().trained.MODELS), _trained, ("bench.models",))
    if (folder / "everyday").is_dir():
        sys.path.insert(0, str(folder.resolve()))
        modules = sorted(f"everyday.{path.stem}" for path in (folder / "everyday").glob("[!_]*.py"))
        return Source(lambda: _everyday_names(modules), _everyday, tuple(modules), ("everyday",))
    if (folder / "census.py").exists():
        from . import worse

        source = worse.source_of(text)
        return Source(source.names, lambda name: [_plain(*source.build(name))], source.modules, source.mended)
    sys.path.insert(0, str(folder.resolve()))
    recorded = frozen_calls.Recorded(folder)
    return Source(recorded.names, lambda name: _recorded(recorded, name), (), recorded.modules)


# --- where programs come from ----------------------------------------------------------------------------------------


def _models() -> Any:
    return importlib.import_module("bench.models")


def _plain(function: Any, calls: list[tuple[tuple[Any, ...], dict[str, Any]]], **more: Any) -> Program:
    return Program(function, [lambda call=call: call for call in calls], {"dynamic": False}, **more)  # type: ignore[misc]


def _row(name: str) -> list[Program]:
    rows = _models().rows
    torch.set_grad_enabled(False)
    model, calls = rows.build(name)
    if not rows.ROWS[name].fresh:
        model(**calls[0])
    return [_plain(model, [((), inputs) for inputs in calls])]


def _trained(name: str) -> list[Program]:
    torch.manual_seed(0)
    model, batch = _models().trained.MODELS[name]()
    return [_plain(model.train(), [((), batch()) for _ in range(3)], trains=True)]


def _everyday_names(modules: list[str]) -> list[str]:
    return [f"{module}.{name}" for module in modules for name in importlib.import_module(module).CASES]


def _everyday(name: str) -> list[Program]:
    module, _, case = name.rpartition(".")
    built = importlib.import_module(module).CASES[case]
    torch.manual_seed(0)
    function = built["build"]()
    torch.manual_seed(1)
    return [Program(function, [lambda given=given: _named(given) for given in built["calls"]()], trains=True)]  # type: ignore[misc]


def _named(given: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if given and isinstance(given[-1], dict) and given[-1].get("__kw"):
        return given[:-1], {key: value for key, value in given[-1].items() if key != "__kw"}
    return given, {}


def _recorded(recorded: frozen_calls.Recorded, name: str) -> list[Program]:
    return [
        Program(each.function, [*each.calls()], each.options, each.trains, each.compiles)
        for each in recorded.entries(name)
    ]


# --- what is seen ----------------------------------------------------------------------------------------------------


class Watch:
    """What Dynamo does: attempts by frame and compilation, graphs, breaks, and processor time of its own."""

    def __init__(self) -> None:
        self.attempts: dict[tuple[Any, ...], int] = {}
        self.graphs: list[tuple[int, str]] = []
        self.seconds = 0.0
        self._depth = 0

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        from torch._dynamo import convert_frame

        transform, compile_ = convert_frame.transform_code_object, convert_frame._compile

        def transform_code_object(code: Any, *given: Any, **named: Any) -> Any:
            about = torch._guards.CompileContext.get().compile_id
            place = _place(code.co_filename, code.co_firstlineno, code.co_name)
            if not place.startswith(_OURS):  # in which the hook proves its mechanisms
                key = (about.frame_id, about.frame_compile_id, place)
                self.attempts[key] = self.attempts.get(key, 0) + 1
            return transform(code, *given, **named)

        def timed(*given: Any, **named: Any) -> Any:
            begun, self._depth = time.process_time(), self._depth + 1
            try:
                return compile_(*given, **named)
            finally:
                self._depth -= 1
                self.seconds += 0.0 if self._depth else time.process_time() - begun

        convert_frame.transform_code_object, convert_frame._compile = transform_code_object, timed  # type: ignore[assignment]
        try:
            yield
        finally:
            convert_frame.transform_code_object, convert_frame._compile = transform, compile_

    def backend(self, graph: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> Callable[..., Any]:
        called = [_name(node.target) for node in graph.graph.nodes if node.op.startswith("call")]
        self.graphs.append((len(called), hashlib.sha256("\n".join(called).encode()).hexdigest()[:12]))
        return graph.forward


def _name(target: Any) -> str:
    """Of an operation of a graph; the hook's own are all one, whatever they are called."""
    if isinstance(target, str):
        return target
    name = f"{getattr(target, '__module__', None) or ''}.{getattr(target, '__name__', None) or target}"
    return _OURS if "graphmend" in name else name


def _place(path: str, line: int, function: str) -> str:
    parts = Path(path).parts
    if Path(graphmend_hook.__file__).parent in Path(path).parents:
        return f"{_OURS}:{function}"
    return f"{'/'.join(parts[-3:] if 'site-packages' in parts else parts[-1:])}:{line} {function}"


def seen_of(program: Program) -> Seen:
    """What there is to see of the calls of a compiled program."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    watch, after, errors = Watch(), [], []
    compile_ = functools.partial(torch.compile, backend=watch.backend, **program.options)
    function = program.function
    compiled = functools.partial(function, compile_) if program.compiles else compile_(function)
    with watch.watching():
        for number, call in enumerate(program.calls):
            torch.manual_seed(10 + number)
            random.seed(number)
            try:
                given, named = call()
                found = compiled(*given, **named)
                if program.trains:
                    _backward(found)
            except Exception as error:
                errors.append(f"{number} {type(error).__qualname__}")
            after.append(len(watch.graphs))
    breaks = Counter(_ADDRESS.sub("", text).split("\n", 1)[0] for text in _breaks())
    return {
        "graphs": after,
        "operations": watch.graphs,
        "breaks": dict(sorted(breaks.items())),
        "frames": [[place, attempts] for (*_, place), attempts in watch.attempts.items()],
        "errors": errors,
        "seconds": round(watch.seconds, 4),
    }


def _breaks() -> Iterator[str]:
    for text, count in torch._dynamo.utils.counters["graph_break"].items():
        yield from [text] * count


def _backward(found: Any) -> None:
    found = getattr(found, "loss", found)
    trained = [leaf for leaf in tree_leaves(found) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if trained:
        sum(leaf.float().abs().sum() for leaf in trained).backward()  # type: ignore[union-attr]


def _left() -> tuple[list[str], list[str]]:
    """The places and codes of what was left while tracing, and what the hook does not rely on."""
    report = graphmend_hook.report(as_dict=True)
    left = {f"{_place(each['path'], each['line'], each['function'])}: {each['code']}" for each in report["traced"]}
    return sorted(left), report["processes"][0]["not_relied_on"]


# --- the process that is asked ---------------------------------------------------------------------------------------


def serve(source: Source) -> None:
    """Answer what `arms.Worker` asks for, a program each."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    for module in ("torch._dynamo.convert_frame", *source.modules):
        importlib.import_module(module)
    torch.compile(small.build("Checked"), backend="eager")(torch.ones(2, small.WIDTH))
    gc.freeze()
    gc.disable()  # no child lives long
    for request in sys.stdin:
        asked = json.loads(request)
        if asked["do"] == "names":
            print(json.dumps({"answer": source.names()}), file=answers, flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            answer = Path(folder, "seen.json")
            child = os.fork()
            if not child:
                _answer(source.build, asked["name"], answer)
            os.waitpid(child, 0)
            seen = json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else {"died": "killed"}
        print(json.dumps({"answer": seen}), file=answers, flush=True)


def _answer(build: Build, name: str, answer: Path) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    signal.alarm(TIMEOUT)
    try:
        runs = [seen_of(program) for program in build(name)]
        left, unreliable = _left()
        answer.write_text(json.dumps({"runs": runs, "left": left, "not_relied_on": unreliable}), encoding="utf-8")
    except BaseException as error:
        answer.write_text(json.dumps({"died": f"{type(error).__qualname__}: {error}"[:300]}), encoding="utf-8")
    finally:
        os._exit(0)


if __name__ == "__main__":
    serve(source_of(sys.argv[1]))

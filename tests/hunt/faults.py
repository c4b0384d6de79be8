"""Each function of ours that runs in a user's process fails in turn: ``python -m tests.hunt.faults [--every N]``.

For each function that the import, the mending (also late, and of a module that is loaded by its place), the compilation
and the calls of `faulty_module` and `faulty_plugin` run, and for each of an exception, a MemoryError and an interrupt, a
fresh process (a fork, with torch imported) makes every call of the function raise it.  An exception must change nothing
that the program can see, and be said once.  An interrupt must arrive where the program can catch it.  Either way nothing
half-made is left: no module, no finder of ours once it is uninstalled, no other settings or modes, no effect that waits,
no temporary file in the cache.

Exit status: 0 if nothing differs.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import importlib.util
import io
import json
import logging
import os
import pkgutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from observing import Kept

from hunt.checking import OF_FAILED_GRAPHS, SWITCHED

EXCEPTIONS = {"exception": RuntimeError, "memory": MemoryError, "interrupt": KeyboardInterrupt}
PACKAGE = "graphmend_hook"
LIBRARY, PLUGIN, LOADED = "faulty_module", "faulty_plugin", "faulty_plugin_by_location"
# What Python, Dynamo, the program and mended code call themselves, so that nothing of ours stands around it: each hands
# on to what may fail, and handles that.
NETS = frozenset(
    [
        *["graphmend_hook:_install_from_environment", "hook.loader:MendingFinder.find_spec", "diagnostics:notice"],
        *[
            "diagnostics:say_failed",
            "engine.attempt.defects:report",
            "engine.door.question:_variable_of",
            "engine.epilogue.deferral:tracing",
        ],
        *["engine.door.question:Question.answer", "engine.door.question:question.<locals>.mark.<locals>.ask"],
        *["engine.epilogue.delivery:on_generated_code", "rules.shared.traced_conditions:compiling"],
        *["engine.attempt.compilation:Compilation._judge", "engine.attempt.compilation:Compilation._end"],
        *[
            "engine.attempt.compilation:Compilation.call",
            "engine.attempt.compilation:Compilation.before.<locals>.look_and_answer",
        ],
        *["engine.epilogue.delivery:_read_all"],
    ]
)


def _modules() -> Iterator[str]:
    """Those of the package that a user's program imports."""
    package = importlib.import_module(PACKAGE)
    for module in pkgutil.walk_packages(package.__path__, f"{PACKAGE}."):
        if not module.name.startswith((f"{PACKAGE}.__main__", f"{PACKAGE}.doctor.", f"{PACKAGE}.bootstrap")):
            yield module.name


def functions() -> dict[int, FunctionType]:
    """All functions of the package, by the address of their code: Dynamo's own code has constants without a hash."""
    package = str(Path(importlib.import_module(PACKAGE).__file__ or "").parent)
    found = {}
    for value in gc.get_objects():
        if isinstance(value, FunctionType) and value.__code__.co_filename.startswith(package):
            found[id(value.__code__)] = value
    return found


def name_of(function: FunctionType) -> str:
    line = f":{function.__code__.co_firstlineno}" if "<lambda>" in function.__qualname__ else ""
    return f"{function.__module__.removeprefix(PACKAGE + '.')}:{function.__qualname__}{line}"


# --- what a user's program does ---------------------------------------------------------------------------------------


def program(cache: Path, mend: bool) -> dict[str, Any]:
    """Import the library, with the hook or without, compile, call; all that the program can see."""
    import numpy as np
    import torch

    import graphmend_hook

    notices, records, printed, results = Kept(), Kept(), io.StringIO(), []
    early = importlib.import_module(PLUGIN)  # mended late
    logging.getLogger(PACKAGE).addHandler(notices)
    logging.getLogger(PACKAGE).propagate = False
    logging.getLogger(LIBRARY).addHandler(records)
    logging.getLogger(LIBRARY).setLevel(logging.INFO)
    if mend:
        modules = ",".join((LIBRARY, PLUGIN, LOADED))
        os.environ.update(GRAPHMEND_MODULES=modules, GRAPHMEND_LATE="1", GRAPHMEND_CACHE_DIR=str(cache))
        graphmend_hook._install_from_environment()  # as its import does
    torch.manual_seed(0)
    np.random.seed(0)
    with contextlib.redirect_stdout(printed):
        library = importlib.import_module(LIBRARY)
        model = library.Model().eval()
        x = torch.tensor([1.0, -2.0, 4.0])
        calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
            (model, (x, torch.tensor(2))),
            (model, (-x, torch.tensor(2))),
            (model, (x * 50, torch.tensor(2))),
            (model, (x, torch.tensor(3))),
            (library.rows, (x,)),
            (library.rows, (-x,)),
            (library.experts, (x,)),
            (library.first, (x, torch.tensor([0, 2]))),
            (library.first, (x, torch.tensor([7]))),
            *((plugin.halved, (given,)) for plugin in (early, by_location(LOADED)) for given in (x, x * 50)),
        ]
        compiled = {function: torch.compile(function, backend="eager") for function, _ in calls}
        for function, given in calls:
            for called in (function, compiled[function]):
                model.seen = None
                with torch.no_grad():
                    try:
                        results.append(repr(called(*given)))
                    except (ValueError, IndexError) as error:
                        results.append(f"{type(error).__name__}: {str(error).splitlines()[0]}")
        results.append(repr(np.random.uniform()))
    with contextlib.suppress(Exception):  # what was asked for may fail, but not leave anything half-made
        graphmend_hook.uninstall()
    return {
        "results": results,
        "records": records.texts,
        "printed": printed.getvalue(),
        "notices": [text for text in notices.texts if not text.startswith(OF_FAILED_GRAPHS)],
    }


def by_location(name: str) -> ModuleType:
    """The plugin, as programs load their plugins: not through `import`."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{PLUGIN}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def left_behind(cache: Path) -> list[str]:
    """What a failure must not leave."""
    import torch._dynamo

    found = [f"finder {finder!r}" for finder in sys.meta_path if type(finder).__module__.startswith(PACKAGE)]
    found += [f"setting {name}" for name in SWITCHED if getattr(torch._dynamo.config, name)]
    found += [f"file {file.name}" for file in cache.rglob("*") if file.is_file() and file.suffix in (".tmp", ".part")]
    queue = sys.modules.get(f"{PACKAGE}.dynamo.queue")
    if queue is not None and queue.graphmend_pending:
        found.append("an effect that was not delivered")
    if not torch.is_grad_enabled():
        found.append("gradients off")
    return found


# --- one function fails ------------------------------------------------------------------------------------------------


def failing(code: CodeType, exception: type[BaseException]) -> CodeType:
    """Code that raises, for the function that has `code`."""
    source = (
        f"def raising(*args, **kwargs):\n    import sys\n    sys.graphmend_reached = True\n"
        f"    raise {exception.__name__}('injected')\n"
    )
    names: dict[str, Any] = {}
    exec(source, names)
    raising: CodeType = names["raising"].__code__
    return raising.replace(
        co_freevars=code.co_freevars,
        co_filename=code.co_filename,
        co_name=code.co_name,
        co_firstlineno=code.co_firstlineno,
    )


def attempt(function: FunctionType, exception: type[BaseException], cache: Path) -> dict[str, Any]:
    """What the program sees while that function fails at every call."""
    code = function.__code__
    function.__code__ = failing(code, exception)
    seen: dict[str, Any] = {}
    try:
        seen = program(cache, mend=True)
    except BaseException as error:
        seen["raised"] = f"{type(error).__name__}: {error}"
        seen["where"] = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-4:]]
    finally:
        function.__code__ = code
    import graphmend_hook

    graphmend_hook.uninstall()
    half_made = LIBRARY in sys.modules and not hasattr(sys.modules[LIBRARY], "first")
    seen["left"] = left_behind(cache) + [f"module {LIBRARY}"] * half_made
    seen["reached"] = hasattr(sys, "graphmend_reached")
    return seen


def in_a_fork(action: Callable[[], Any]) -> Any:
    """What `action` gives in a child process; a dict with "died" if that ends otherwise."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with open(os.devnull, "w") as null:
            os.dup2(null.fileno(), 1)
            os.dup2(null.fileno(), 2)
        try:
            answer = action()
        except BaseException:
            answer = {"died": traceback.format_exc()}
        with os.fdopen(writing, "w") as out:
            json.dump(answer, out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as came:
        text = came.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else {"died": f"status {status}"}


def that_run(cache: Path) -> list[str]:
    """The names of the functions that the program runs, in the order of their first calls."""
    known = functions()
    seen: dict[str, None] = {}

    def note(frame: Any, event: str, _argument: Any) -> None:
        if event == "call" and (function := known.get(id(frame.f_code))) is not None:
            seen.setdefault(name_of(function))

    sys.setprofile(note)
    try:
        program(cache, mend=True)
    finally:
        sys.setprofile(None)
    return list(seen)


def difference(stock: dict[str, Any], seen: dict[str, Any], kind: str) -> str:
    """What is wrong, in words; "" if nothing is."""
    if "died" in seen:
        return f"the process died: {seen['died']}"
    if not seen["reached"]:  # now and then Dynamo comes to another one first
        return ""
    if seen["left"]:
        return f"left behind: {', '.join(seen['left'])}"
    if kind == "interrupt":
        arrived = seen.get("raised", "").startswith("KeyboardInterrupt")
        return "" if arrived else f"the interrupt did not arrive: {seen.get('raised', 'nothing was raised')}"
    if "raised" in seen:
        return f"raised {seen['raised']} at {seen['where']}"
    for name in ("results", "records", "printed"):
        if seen[name] != stock[name]:
            return f"{name}: {_first(stock[name], seen[name])}"
    said = [text for text in seen["notices"] if "injected" in text]
    return f"said {len(said)} times" if len(said) > 1 else ""


def _first(expected: Any, found: Any) -> str:
    if isinstance(expected, str) or len(expected) != len(found):
        return f"{found} instead of {expected}"
    return next(f"{mine} instead of {other}" for other, mine in zip(expected, found) if mine != other)


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.hunt.faults", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth function")
    parser.add_argument("--only", default="", help="functions whose name has this in it")
    parser.add_argument("--kinds", default=",".join(EXCEPTIONS), help="exception,memory,interrupt")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    import torch._dynamo.convert_frame  # noqa: F401  once, for all children

    for module in _modules():
        with contextlib.suppress(ImportError):  # what an extra of ours needs
            importlib.import_module(module)
    wrong = tried = 0
    with tempfile.TemporaryDirectory() as folder:
        stock = in_a_fork(lambda: program(Path(folder, "stock"), mend=False))
        names = in_a_fork(lambda: that_run(Path(folder, "names")))
        if isinstance(names, dict):
            raise SystemExit(names["died"])
        by_name = {name_of(function): function for function in functions().values()}
        chosen = [name for name in names if given.only in name and name not in NETS][:: given.every]
        for number, name in enumerate(chosen):
            for kind in given.kinds.split(","):
                cache = Path(folder, f"{number}-{kind}")
                seen = in_a_fork(lambda: attempt(by_name[name], EXCEPTIONS[kind], cache))  # noqa: B023
                tried += 1
                if found := difference(stock, seen, kind):
                    wrong += 1
                    print(f"{name}, {kind}: {found}", flush=True)
    print(f"{len(chosen)} of {len(names)} functions that ran, {tried} faults, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

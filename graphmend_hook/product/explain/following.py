"""Observes a process of the program that is explained, from the time that it imports torch; its children, too.

Two variables tell a process what to do: the first, which writes to FOLDER/observed.json, and each python that it
starts with its environment, through the `sitecustomize` that the hook's own children have.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

from ...engine.door.compiled_calls import call_after_each
from ..report.ledger import ranks_of_process
from .observe import Observer

FOLDER = "_GRAPHMEND_OBSERVED"  # where what is seen is written
CALLS = "_GRAPHMEND_CALLS"  # after how many calls of compiled functions a process is to end; may be missing
FIRST = "observed.json"
_DYNAMO = "torch._dynamo"


def start(is_first: bool = False) -> None:
    """Observe this process from now on, and write what was seen when it ends.

    is_first: is it the program itself, and not one that it has started?  Such a one writes if it compiled something.
    """
    observer, pid, began = Observer(), os.getpid(), time.time()
    attachment = contextlib.ExitStack()
    stop = _stop_after(int(os.environ[CALLS])) if CALLS in os.environ else None

    def attach() -> None:
        attachment.enter_context(observer.attached())
        if stop is not None:
            call_after_each(stop)

    def write() -> None:
        attachment.close()
        if os.getpid() == pid and (is_first or observer.graphs or observer.breaks):  # not in a forked child
            name = FIRST if is_first else f"{pid}.json"
            seen = {**observer.as_json(), "process": "" if is_first else _name_of_process(), "began": began}
            _write(os.path.join(os.environ.get(FOLDER, ""), name), seen)

    atexit.register(write)
    _once_dynamo_is_there(attach)


def _write(path: str, seen: dict[str, Any]) -> None:
    """At once, under its name; a process that lives on when nobody reads any more writes nothing."""
    with contextlib.suppress(OSError):
        with open(f"{path}.part", "w", encoding="utf-8") as stream:
            json.dump(seen, stream)
        os.replace(f"{path}.part", path)


def _name_of_process() -> str:
    """By which a person knows it: that of `multiprocessing`, else its program; and its rank in a job."""
    workers = sys.modules.get("multiprocessing.process")
    if workers is not None and workers.parent_process() is not None:
        name = str(workers.current_process().name)
    else:
        name = os.path.basename(sys.argv[0]) or "python"
    rank = ranks_of_process()["rank"]
    return name if rank is None else f"{name} (rank {rank})"


def _stop_after(calls: int) -> Callable[[], None]:
    """What is to be called after each call of a compiled function: ends the program as `sys.exit` does, at the last."""
    done = 0
    lock = threading.Lock()
    signal_main = _way_to_stop_main_thread()

    def count() -> None:
        nonlocal done
        with lock:
            done += 1
            is_over = done >= calls
        if is_over:
            if threading.current_thread() is not threading.main_thread():
                signal_main()
            raise SystemExit(0)

    return count


def _way_to_stop_main_thread() -> Callable[[], None]:
    """What lets the main thread leave, also where it waits for something; a SystemExit ends one thread only."""
    number = getattr(signal, "SIGUSR2", None)
    if number is None or signal.getsignal(number) is not signal.SIG_DFL:
        return lambda: None

    def leave(_number: int, _frame: object) -> None:
        raise SystemExit(0)

    signal.signal(number, leave)
    return lambda: signal.pthread_kill(threading.main_thread().ident or 0, number)


class _Loader(SourceFileLoader):
    then: Callable[[], None]

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        self.then()


class _Watch(MetaPathFinder):
    """Waits for the import of Dynamo: a process that compiles nothing must not be made to import torch."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _DYNAMO:
            return None
        with contextlib.suppress(ValueError):  # another thread was first
            sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin and type(spec.loader) is SourceFileLoader:
            spec.loader = loader = _Loader(fullname, spec.origin)
            loader.then = self._then
        return spec


def _once_dynamo_is_there(then: Callable[[], None]) -> None:
    if _DYNAMO in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Watch(then))

"""The arms of every comparison, each in its own process: the untouched library, PyTorch's switches, the hook."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
# "off" is the library as it is; "knobs" has all that PyTorch offers by hand; "on" has the hook.
ARMS: dict[str, dict[str, str]] = {
    "off": {},
    "knobs": {"BENCH_KNOBS": "1"},
    "on": {"GRAPHMEND_MODULES": "transformers"},
}
_NONE: Mapping[str, str] = {}
_FOREIGN = ("PYTHON", "GRAPHMEND", "TORCHINDUCTOR", "TORCH_COMPILE", "TRITON")


class ArmFailedError(RuntimeError):
    """A process of an arm could not do what it was told."""


def environment(arm: str, folder: Path) -> dict[str, str]:
    """The variables of a process of `arm`; what it compiles is kept under `folder`, which no other arm sees."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(_FOREIGN)}
    own = {
        "PYTHONPATH": str(ROOT),
        "HF_HUB_OFFLINE": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "GRAPHMEND_CACHE_DIR": str(folder / "graphmend"),
    }
    return {**clean, **own, **ARMS[arm]}


class Worker:
    """A process of an arm that waits for requests: of `bench.worker`, or of another `module` and its arguments.

    variables: of its environment, beside the arm's own.
    """

    def __init__(
        self, arm: str, folder: Path, module: Sequence[str] = ("bench.worker",), variables: Mapping[str, str] = _NONE
    ) -> None:
        self.arm = arm
        self._errors = open(folder / f"{arm}.err", "w+", encoding="utf-8")  # noqa: SIM115  closed by `close`
        self._process = subprocess.Popen(
            [sys.executable, "-m", *module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**environment(arm, folder), **variables},
            cwd=ROOT,
            text=True,
        )

    def __call__(self, do: str, **arguments: Any) -> Any:
        """What the process answers; raises ArmFailedError with what it said if it cannot."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps({"do": do, **arguments}), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer = json.loads(line) if line else {"error": f"the process ended: {self._last_words()}"}
        if "error" in answer:
            raise ArmFailedError(f"arm {self.arm}, {do}: {answer['error']}")
        return answer["answer"]

    def _last_words(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-2000:]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._errors.close()


@contextmanager
def workers(*names: str) -> Iterator[tuple[Worker, ...]]:
    """A process for each of the arms, with caches that begin empty and are its own."""
    with ExitStack() as stack:
        started = []
        for name in names:
            folder = Path(tempfile.mkdtemp(prefix=f"bench-{name}-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            worker = Worker(name, folder)
            stack.callback(worker.close)
            started.append(worker)
        yield tuple(started)


def differing_inputs(inputs: Mapping[str, str]) -> str:
    """What is wrong if the arms were not given the same inputs, else ""."""
    return "" if len(set(inputs.values())) == 1 else f"the arms have different inputs: {dict(inputs)}"


def not_mended(graphs: Mapping[str, int]) -> str:
    """What is wrong if the hook made no difference to the graphs, else "": its times would pass for a result."""
    if graphs["on"] < graphs["off"]:
        return ""
    return f"not mended: {graphs['on']} graphs with the hook, {graphs['off']} without"

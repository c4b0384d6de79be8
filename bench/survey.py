"""One arm of a survey of models, each compiled once: ``python -m bench.survey CENSUS OUT.jsonl``.

CENSUS is the folder of the survey's `census.py`, which builds a small model of each type that transformers has, or
``rows`` for the rows of the tests.  The hook is there if ``GRAPHMEND_MODULES`` is set.  What is found out about a model
is a line of OUT; a model that OUT has already is left out.
"""

from __future__ import annotations

import os

if "GRAPHMEND_MODULES" in os.environ:
    import graphmend_hook  # noqa: F401  before the libraries are imported

import argparse
import importlib
import json
import multiprocessing
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.models import rows

Line = dict[str, Any]

ROWS = "rows"
# As many arguments of the survey's own as its functions read.
_GIVEN = {"eager_only": False, "bf16": False, "half_all": False, "base": False, "verbose": False, "tb": False}
_LIMITS = {"timeout": 120.0, "build_budget": 12.0}
_INDUCTOR_TIMEOUT, _CLOSE = 600.0, 1e-2


def of_types(folder: Path, train: bool, inductor: bool) -> tuple[list[str], Callable[[str], Line]]:
    """The names of the model types that the census in `folder` knows, and what it finds out about one."""
    sys.path.insert(0, str(folder.resolve()))
    census = importlib.import_module("census")
    given = argparse.Namespace(**_GIVEN, **_LIMITS, train=train)
    if inductor:
        given.timeout = _INDUCTOR_TIMEOUT
        _use_inductor(census)
    return census.order()[0], lambda name: census.run_one(name, given)


def _use_inductor(census: Any) -> None:
    """Let the census compile with Inductor, which draws eager's numbers, and compare to within `_CLOSE`."""
    import torch
    from torch._inductor import config

    compile = torch.compile
    config.fallback_random = True

    def with_inductor(model: torch.nn.Module, *, backend: Callable[..., Any], dynamic: bool) -> Any:
        def counted(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
            from torch._inductor.compile_fx import compile_fx

            backend(graph, inputs)
            return compile_fx(graph, inputs)

        return compile(model, backend=counted, dynamic=dynamic)

    def close(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
        if a is None or b is None:
            return a is b
        like = a.shape == b.shape and a.dtype == b.dtype
        return like and torch.allclose(a.double(), b.double(), _CLOSE, _CLOSE, equal_nan=True)

    torch.compile = with_inductor
    census.same = close


def of_rows() -> tuple[list[str], Callable[[str], Line]]:
    """The names of the rows that the installed transformers has, and what is found out about one."""

    def one(name: str) -> Line:
        with multiprocessing.get_context("fork").Pool(1) as process:
            return process.apply(_row, [name])

    return rows.present(metadata.version("transformers")), one


def _row(name: str) -> Line:
    """The breaks of one call of a row; or, as `err`, what went wrong."""
    import torch
    from judge import Counting

    counting = Counting("eager")
    model, (inputs, *_) = rows.build(name)
    with torch.no_grad():
        if not rows.ROWS[name].fresh:
            model(**inputs)
        try:
            torch.compile(model, backend=counting, dynamic=False)(**inputs)
        except Exception as error:
            return {"name": name, "row": {"breaks": None, "err": repr(error)}}
    return {"name": name, "row": {"breaks": counting.graphs - 1}}


def main() -> None:
    parser = argparse.ArgumentParser("python -m bench.survey", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("census", help="the folder of census.py, or rows")
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", help="the models, with commas between them")
    parser.add_argument("--train", action="store_true", help="three training steps of each type, not a forward pass")
    parser.add_argument("--inductor", action="store_true", help="compile types with Inductor; the default is eager")
    given = parser.parse_args()
    names, observe = of_rows() if given.census == ROWS else of_types(Path(given.census), given.train, given.inductor)
    done = [json.loads(line)["name"] for line in given.out.open(encoding="utf-8")] if given.out.exists() else []
    # What every child needs is loaded once, before they are forked.
    importlib.import_module("torch._dynamo.convert_frame")
    importlib.import_module("transformers.models.t5.modeling_t5")
    for name in given.only.split(",") if given.only else names:
        if name in done:
            continue
        line = observe(name)
        with given.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line)[:200], flush=True)


if __name__ == "__main__":
    main()

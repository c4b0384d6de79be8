"""What PyTorch makes of the cases by its own captures: ``python -m bench.ecosystem.captured LIBRARY [PART ...]``.

PART: of the names of cases.  Without the hook, with ``fullgraph=True``, ``capture_scalar_outputs`` and
``capture_dynamic_output_shape_ops``.
"""

from __future__ import annotations

import importlib
import logging
import sys
import warnings
from collections.abc import Callable

import torch


def main(library: str, *parts: str) -> None:
    torch._dynamo.config.capture_scalar_outputs = True
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    for name, (build, inputs) in importlib.import_module(f"bench.ecosystem.cases.{library}").CASES.items():
        if not parts or any(part in name for part in parts):
            torch._dynamo.reset()
            torch.manual_seed(0)
            print(f"{name}: {_said_of(torch.compile(build(), fullgraph=True, backend='eager'), inputs())}")


def _said_of(function: Callable[..., object], given: tuple[object, ...]) -> str:
    try:
        function(*given)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    return "one graph"


if __name__ == "__main__":
    main(*sys.argv[1:])

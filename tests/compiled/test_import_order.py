"""A mended module may be imported before torch, after it, or never meet it."""

from __future__ import annotations

from typing import Any

import pytest

HELPERS = "def helper(x):\n    print('helper')\n    return x + 1\n"
RESTARTS = "print(torch._dynamo.utils.get_compilation_metrics()[-1].restart_reasons or None)"
CHECK = "print(torch.compile(helpers.helper, backend='eager', fullgraph=True)(torch.ones(2)))"


@pytest.mark.parametrize(
    "order",
    [
        "import graphmend_hook, torch, helpers",
        "import torch, graphmend_hook, helpers",
        "import torch._dynamo, graphmend_hook, helpers",
        "import graphmend_hook, torch._dynamo, helpers",
        "import graphmend_hook, helpers; helpers.helper(0); import torch; helpers.helper(torch.ones(1))",
    ],
)
@pytest.mark.slow
def test_the_order_of_imports_does_not_matter(order: str, python: Any, write: Any) -> None:
    write("helpers.py", HELPERS)
    done = python("-c", f"{order}; {CHECK}; {RESTARTS}", GRAPHMEND_MODULES="helpers")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("helper\ntensor([2., 2.])\nNone\n"), f"{done.stdout}: nothing is traced twice"


def test_a_program_without_torch_never_imports_it(python: Any, write: Any) -> None:
    write("helpers.py", HELPERS)
    write(
        "main.py", "import sys, helpers\nprint(helpers.helper(1), 'torch' in sys.modules, 'bytecode' in sys.modules)\n"
    )
    done = python("-m", "graphmend_hook", "--report", "main.py")
    assert done.stdout == "helper\n2 False False\n"
    assert "1 site mended in" in done.stderr


@pytest.mark.slow
def test_uninstalled_before_torch_loses_nothing(python: Any, write: Any) -> None:
    write("helpers.py", HELPERS)
    code = "import graphmend_hook as g; h = g.install('helpers'); import helpers; h.uninstall(); import torch\n"
    done = python("-c", code + CHECK.replace(", fullgraph=True", ""))
    assert done.stdout == "helper\ntensor([2., 2.])\n", done.stderr

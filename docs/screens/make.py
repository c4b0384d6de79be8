"""Makes the screens of this folder: ``python docs/screens/make.py [NAME ...]``.

Each is what a command prints on a terminal, as an SVG that rich draws; the page of `graphmend explain` is photographed
by its browser test (``SCREENSHOT=docs/screens/explain.png pytest tests/explain/test_page.py``).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
GRAPHMEND = [sys.executable, "-c", "import sys; from graphmend_hook.cli import main; sys.exit(main())"]
WIDTH = 110

MODEL = """\
import logging
import torch

logger = logging.getLogger(__name__)


class Model(torch.nn.Module):
    def forward(self, x):
        x = x + 1
        logger.warning("mean %s", x.mean())
        if x.sum() > 10:
            x = x - 10
        if torch.isnan(x).any():
            raise ValueError("not a number")
        return torch.unique(x).sum()
"""
TRAIN = """\
import torch
from model import Model

with torch.no_grad():
    print(torch.compile(Model(), backend="eager")(torch.ones(3)))
"""
# By screen: the words after `graphmend`.
SCREENS = {
    "explain": ["explain", "train.py"],
    "diff": ["diff", "model.py", "--rule", "trap", "--context", "1"],
    "rules": ["rules", "GM102-R05"],
    "doctor": ["doctor", "--modules", "model"],
    "cache": ["cache", "info"],
    "report": ["run", "--report", "train.py"],
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.py").write_text(MODEL, encoding="utf-8")
        Path(folder, "train.py").write_text(TRAIN, encoding="utf-8")
        for name in sys.argv[1:] or SCREENS:
            words = SCREENS[name]
            done = subprocess.run(
                [*GRAPHMEND, *words],
                cwd=folder,
                env={**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "GRAPHMEND_CACHE_DIR": f"{folder}/cache"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
            console.print(Text(f"$ graphmend {' '.join(words)}", style="bold"))
            console.print(Text.from_ansi(done.stdout.replace(folder, "/home/you/app")))
            console.save_svg(str(HERE / f"{name}.svg"), title="", unique_id=name)
            print(f"{name}.svg: exit status {done.returncode}")


if __name__ == "__main__":
    main()

"""Makes the screens of this folder: ``python docs/screens/make.py [NAME ...]``.

Each is what a command prints on a terminal, as an SVG that rich draws; ``page`` is the page of `graphmend explain` as a
browser shows it, light and dark (playwright, and chromium on the path).
"""

from __future__ import annotations

import os
import re
import shutil
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


# What a terminal is not left with: the frames of a spinner, each of which the next one erases.
CURSOR = re.compile(r"\x1b\[\?25[lh]")
ERASED = re.compile(r"[^\n]*(\r|\n\r?\x1b\[1A)\x1b\[2K")
PAGE = "page"
WINDOW = {"width": 1400, "height": 860}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.py").write_text(MODEL, encoding="utf-8")
        Path(folder, "train.py").write_text(TRAIN, encoding="utf-8")
        for name in sys.argv[1:] or (*SCREENS, PAGE):
            if name == PAGE:
                photograph(folder)
            else:
                draw(folder, name)


def draw(folder: str, name: str) -> None:
    done = run(folder, *SCREENS[name])
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    console.print(Text(f"$ graphmend {' '.join(SCREENS[name])}", style="bold"))
    shown = (
        ERASED.sub("", CURSOR.sub("", done.stdout.decode()))
        .replace(folder, "/home/you/app")
        .replace(sys.prefix, "/home/you/.venv")
    )
    console.print(Text.from_ansi(shown))
    console.save_svg(str(HERE / f"{name}.svg"), title="", unique_id=name)
    print(f"{name}.svg: exit status {done.returncode}")


def photograph(folder: str) -> None:
    """The page with its first break opened, which remains because one rule is switched off."""
    from playwright.sync_api import sync_playwright

    page = Path(folder, "page.html")
    run(folder, "explain", "--rules=-value", "--html", str(page), "train.py")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for mode, name in (("light", "explain.png"), ("dark", "explain-dark.png")):
            tab = browser.new_page(viewport=WINDOW, color_scheme=mode)
            tab.goto(page.as_uri())
            tab.locator(".break .open").first.click()
            tab.screenshot(path=HERE / name)
            print(f"{name}: {(HERE / name).stat().st_size} bytes")
        browser.close()


def run(folder: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    terminal = {"FORCE_COLOR": "1", "COLUMNS": str(WIDTH)}
    env = {**os.environ, **terminal, "GRAPHMEND_CACHE_DIR": f"{folder}/cache"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # else nothing is cached, and doctor and report say so
    return subprocess.run(
        [*GRAPHMEND, *words],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )


if __name__ == "__main__":
    main()

"""An installation of its own, made of what the running interpreter has: what a new user's machine is in a test."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import distributions, metadata
from importlib.util import find_spec
from pathlib import Path

import graphmend_hook

PACKAGE = Path(graphmend_hook.__file__).parent
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


class Sandbox:
    """A folder with a Python that has what this one has, but for graphmend_hook, and a wheel of that to install."""

    def __init__(self, folder: Path) -> None:
        self.home = folder.resolve() / "home"
        self.home.mkdir()
        self._python = folder.resolve() / "python"
        venv.create(self._python, symlinks=True)
        self._link_packages()
        wheels = folder.resolve() / "wheels"
        wheels.mkdir()
        write_wheel(wheels)
        kept = {name: text for name, text in os.environ.items() if not name.startswith(STEERING)}
        self.env = kept | {
            "HOME": str(self.home),
            "PATH": f"{self._python / 'bin'}:{os.environ['PATH']}",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(wheels),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "IPYTHONDIR": str(folder.resolve() / "ipython"),
            "TORCHINDUCTOR_CACHE_DIR": str(folder.resolve() / "inductor"),
            "HF_HUB_OFFLINE": "1",
            "COLUMNS": "100",
        }

    def _link_packages(self) -> None:
        (packages,) = self._python.glob("lib/python*/site-packages")
        torch = find_spec("torch")
        found = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        found |= {str(Path(torch.origin).parents[1])} if torch and torch.origin else set()
        for folder in map(Path, sorted(found)):
            for entry in folder.iterdir():
                if "graphmend" not in entry.name and not (packages / entry.name).exists():
                    (packages / entry.name).symlink_to(entry)

    def run(self, command: str) -> str:
        """What a shell shows of `command` in the home directory, and its exit status where that is not 0."""
        ran = subprocess.run(
            ["bash", "-c", command],
            cwd=self.home,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        shown = ran.stdout.replace(str(self.home), "/home/you").replace(str(self._python), "/opt/python")
        shown = "".join(f"{line.rstrip()}\n" for line in shown.splitlines())
        return shown + f"[exit status {ran.returncode}]\n" * bool(ran.returncode)


STEERING = ("GRAPHMEND_", "PYTHON", "PYTEST_", "COV_", "PIP_", "TRANSFORMERS_", "TORCHINDUCTOR_", "XDG_", "VIRTUAL_ENV")


def write_wheel(folder: Path) -> Path:
    """A wheel of the package as it is imported here, with its entry points."""
    said = metadata("graphmend_hook")
    version, info = said["Version"], f"graphmend_hook-{said['Version']}.dist-info"
    texts = {
        f"graphmend_hook/{file.relative_to(PACKAGE)}": file.read_bytes()
        for file in sorted(PACKAGE.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    }
    needs = "".join(
        f"Requires-Dist: {each}\n" for each in said.get_all("Requires-Dist") or () if "extra ==" not in each
    )
    texts[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: graphmend_hook\nVersion: {version}\n{needs}".encode()
    texts[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    texts[f"{info}/entry_points.txt"] = b"[console_scripts]\ngraphmend = graphmend_hook.cli:main\n"
    record = "".join(f"{name},{_digest(text)},{len(text)}\n" for name, text in texts.items())
    texts[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    path = folder / f"graphmend_hook-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in texts.items():
            wheel.writestr(name, text)
    return path


def _digest(text: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()


def has_pip() -> bool:
    """Can the sandbox install anything?

    Not by `find_spec`: setuptools takes that for pip itself being started, and gives up its own distutils.
    """
    return any(distributions(name="pip")) and sys.platform == "linux"

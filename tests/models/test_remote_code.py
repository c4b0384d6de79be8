"""Models whose code lies beside their weights (``trust_remote_code``), loaded by transformers from a folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("transformers")
HERE = Path(__file__).parent
RUN = HERE / "remote.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as the hub has it: configuration, weights, code."""
    import torch
    from safetensors.torch import save_file

    folder = tmp_path_factory.mktemp("models") / "remote-model"
    shutil.copytree(HERE / "remote_code", folder, ignore=shutil.ignore_patterns("__pycache__"))
    auto_map = {"AutoConfig": "configuration_remote.RemoteConfig", "AutoModel": "modeling_remote.RemoteModel"}
    config = {"model_type": "graphmend_remote", "architectures": ["RemoteModel"], "auto_map": auto_map}
    (folder / "config.json").write_text(json.dumps(config))
    torch.manual_seed(0)
    weights = {f"layers.{layer}.linear.weight": torch.randn(8, 8) for layer in range(2)}
    weights |= {f"layers.{layer}.linear.bias": torch.randn(8) for layer in range(2)}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_remote_code_is_one_graph(folder: Path, python, tmp_path: Path) -> None:
    """By `install` from a configuration, and by the runner, which mends such code where nobody says otherwise."""

    def run(*words: str, way: str = "pretrained", modules: str = "") -> list[dict[str, object]]:
        ran = python(*words, str(RUN), str(folder), way, modules, HF_HOME=str(tmp_path / "hub"))
        assert ran.returncode == 0, ran.stderr
        return [json.loads(line) for line in ran.stdout.splitlines()]

    (stock,) = run()
    (hooked,) = run("-m", "graphmend_hook")
    (installed, statuses) = run(way="config", modules="transformers,transformers_modules")
    assert statuses == {"configuration_remote": "unchanged", "modeling_remote": "mended", "layers_remote": "mended"}
    assert stock["graphs"] >= 3
    for found in (hooked, installed):
        assert found["graphs"] == 1
        assert found["equal"] == [True] * 3
        assert found["error"] == stock["error"] != ""
        assert found["records"] == stock["records"] != []
        assert found["module"].startswith("transformers_modules.")

"""The models that are measured, in three sizes, out of the rows that the tests are held to.

`tiny` is what the tests build.  `medium` is large enough that a layer takes longer than a call of Python.  `real` has
the sizes of the paper's checkpoints with random weights: graph breaks, kernels and launches depend on the code path and
the shapes, not on the weights.  Those that are trained have the size that the tests give them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "models"))
import rows
import trained

Inputs = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """What a model's configuration is made of, beside what the tests' rows say, and how large its inputs are."""

    config: Mapping[str, Any]
    length: int  # tokens
    image: tuple[int, int] | None = None  # pixels


def _widths(width: int, layers: int, heads: int, feed: int, vocabulary: int) -> dict[str, int]:
    return {
        "d_model": width,
        "encoder_layers": layers,
        "decoder_layers": layers,
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_ffn_dim": feed,
        "decoder_ffn_dim": feed,
        "vocab_size": vocabulary,
        "max_position_embeddings": 1024,
    }


def _t5(width: int, feed: int, layers: int, heads: int, vocabulary: int) -> dict[str, int]:
    return {
        "d_model": width,
        "d_ff": feed,
        "d_kv": 64,
        "num_layers": layers,
        "num_heads": heads,
        "vocab_size": vocabulary,
    }


def _phi(width: int, layers: int, heads: int, feed: int, vocabulary: int, original: int) -> dict[str, Any]:
    half = width // heads // 2
    return {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "intermediate_size": feed,
        "vocab_size": vocabulary,
        "pad_token_id": 0,
        "original_max_position_embeddings": original,
        "max_position_embeddings": 4 * original,
        "rope_scaling": {"type": "longrope", "short_factor": [1.0] * half, "long_factor": [2.0] * half},
    }


def _grounding_dino(
    width: int, layers: int, queries: int, swin: dict[str, Any], bert: dict[str, Any]
) -> dict[str, Any]:
    return {
        "backbone_config": {"model_type": "swin", "out_features": ["stage2", "stage3", "stage4"], **swin},
        "text_config": {"model_type": "bert", **bert},
        "d_model": width,
        "encoder_layers": layers,
        "decoder_layers": layers,
        "num_queries": queries,
        "use_timm_backbone": False,
    }


_SWIN_TINY = {"embed_dim": 96, "depths": [2, 2, 6, 2], "num_heads": [3, 6, 12, 24], "window_size": 7}
_SWIN_SMALL = {"embed_dim": 32, "depths": [1, 1, 2, 1], "num_heads": [1, 2, 4, 8], "window_size": 7}
_BERT_SMALL = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 256}

# By row and size; "real" are t5-small, bart-base, blenderbot-400M-distill, Phi-4-mini-instruct, grounding-dino-tiny.
SIZES: dict[str, dict[str, Sizes]] = {
    "t5": {
        "medium": Sizes(_t5(256, 1024, 4, 4, 4096), 64),
        "real": Sizes(_t5(512, 2048, 6, 8, 32128), 128),
    },
    "bart_fp16": {
        "medium": Sizes(_widths(256, 4, 4, 1024, 4096), 64),
        "real": Sizes(_widths(768, 6, 12, 3072, 50265), 128),
    },
    "blenderbot": {
        "medium": Sizes(_widths(256, 4, 4, 1024, 4096), 64),
        "real": Sizes({**_widths(1280, 12, 32, 5120, 8008), "encoder_layers": 2}, 60),
    },
    "phi3": {
        "medium": Sizes(_phi(256, 4, 4, 1024, 4096, 256), 64),
        "real": Sizes(_phi(3072, 32, 24, 8192, 200064, 4096), 128),
    },
    "grounding_dino": {
        "medium": Sizes(_grounding_dino(128, 2, 50, _SWIN_SMALL, _BERT_SMALL), 16, (112, 112)),
        "real": Sizes(_grounding_dino(256, 6, 900, _SWIN_TINY, {}), 16, (800, 1066)),
    },
}
_CLASSES = {
    "t5": ("T5ForConditionalGeneration", "T5Config"),
    "bart_fp16": ("BartForConditionalGeneration", "BartConfig"),
    "blenderbot": ("BlenderbotForConditionalGeneration", "BlenderbotConfig"),
    "phi3": ("Phi3ForCausalLM", "Phi3Config"),
    "grounding_dino": ("GroundingDinoModel", "GroundingDinoConfig"),
}


def build(
    name: str, size: str = "tiny", batch: int = 1, device: str = "cpu", dtype: str | None = None
) -> tuple[torch.nn.Module, Inputs]:
    """The model of row `name` in eval mode and the arguments of one call, the same in every process.

    dtype: the name of a type of torch, by default that of the row.
    Raises ValueError where the row does not have that size.
    """
    if size == "tiny":
        model, (inputs, *_) = rows.build(name)
    elif size in SIZES.get(name, {}):
        model, inputs = _sized(name, SIZES[name][size])
    else:
        raise ValueError(f"row {name} has no size {size!r}; it has {['tiny', *SIZES.get(name, {})]}")
    floats = getattr(torch, dtype) if dtype else rows.ROWS[name].dtype
    batched = {key: _batched(value, batch) for key, value in inputs.items()}
    return model.to(device, floats), {
        key: value.to(device, floats if value.is_floating_point() else None) for key, value in batched.items()
    }


def build_trained(name: str) -> tuple[torch.nn.Module, Inputs]:
    """A model of `trained` in training mode and the arguments of one step, the same in every process."""
    torch.manual_seed(0)
    model, batch = trained.MODELS[name]()
    return model.train(), batch()


def _sized(name: str, sizes: Sizes) -> tuple[torch.nn.Module, Inputs]:
    import transformers

    model_class, config_class = (getattr(transformers, spelling) for spelling in _CLASSES[name])
    torch.manual_seed(0)
    config = config_class(**sizes.config)
    model: torch.nn.Module = model_class(config).eval()
    text = torch.randint(3, config.get_text_config().vocab_size, (1, sizes.length))
    inputs = {"input_ids": text}
    if sizes.image:
        inputs["pixel_values"] = torch.randn(1, 3, *sizes.image)
    elif config.is_encoder_decoder:
        inputs["decoder_input_ids"] = text[:, : sizes.length // 2].clone()
    return model, inputs


def _batched(value: torch.Tensor, batch: int) -> torch.Tensor:
    """Every argument of a row has a batch of one in front."""
    return value.repeat(batch, *[1] * (value.dim() - 1))


def fingerprint(inputs: Inputs) -> str:
    """A text that differs where the inputs do: arms with different inputs are not to be compared."""
    seen = {key: (tuple(value.shape), str(value.dtype), value.double().sum().item()) for key, value in inputs.items()}
    return repr(seen)

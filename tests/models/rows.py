"""Tiny, randomly initialised models of the rows that [Defer] alone must mend (transformers 4.52.4).

Graph breaks are structural: they depend on the code path, not on the size or the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Built = tuple[torch.nn.Module, dict[str, torch.Tensor]]


def ids(low: int = 0) -> torch.Tensor:
    return torch.randint(low, 128, (1, 8))


def t5(T: Any) -> Built:
    config = T.T5Config(vocab_size=128, d_model=64, d_ff=128, d_kv=32, num_layers=2, num_heads=2)
    return T.T5ForConditionalGeneration(config), {"input_ids": ids(), "decoder_input_ids": ids()}


def _encoder_decoder(**more: Any) -> dict[str, Any]:
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    return {"vocab_size": 128, "d_model": 64, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, **sizes, **more}


def whisper(T: Any) -> Built:
    special = {"decoder_start_token_id": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    lengths = {"num_mel_bins": 80, "max_source_positions": 64, "max_target_positions": 64}
    model = T.WhisperForConditionalGeneration(T.WhisperConfig(**_encoder_decoder(**special, **lengths)))
    return model, {"input_features": torch.randn(1, 80, 128), "decoder_input_ids": ids()}


def bart(T: Any) -> Built:
    model = T.BartForConditionalGeneration(T.BartConfig(**_encoder_decoder(max_position_embeddings=64)))
    return model, {"input_ids": ids(3), "decoder_input_ids": ids(3)}


def marian(T: Any) -> Built:
    special = {"decoder_start_token_id": 2, "pad_token_id": 1}
    model = T.MarianMTModel(T.MarianConfig(**_encoder_decoder(max_position_embeddings=64, **special)))
    return model, {"input_ids": ids(3), "decoder_input_ids": ids(3)}


def blenderbot(T: Any) -> Built:
    model = T.BlenderbotForConditionalGeneration(T.BlenderbotConfig(**_encoder_decoder(max_position_embeddings=64)))
    return model, {"input_ids": ids(), "decoder_input_ids": ids()}


def biogpt(T: Any) -> Built:
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    model = T.BioGptForCausalLM(T.BioGptConfig(vocab_size=128, max_position_embeddings=64, **sizes))
    return model, {"input_ids": ids()}


def pegasus(T: Any) -> Built:
    model = T.PegasusForCausalLM(T.PegasusConfig(**_encoder_decoder(max_position_embeddings=64)))
    return model, {"input_ids": ids()}


def layoutlmv3(T: Any) -> Built:
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    layout = {"max_2d_position_embeddings": 1024, "coordinate_size": 8, "shape_size": 16, "visual_embed": False}
    image = {"input_size": 32, "patch_size": 16}
    config = T.LayoutLMv3Config(vocab_size=128, max_position_embeddings=64, **sizes, **layout, **image)
    return T.LayoutLMv3Model(config), {"input_ids": ids(), "bbox": torch.zeros(1, 8, 4, dtype=torch.long)}


# Breaks of the untouched library, eval mode, no_grad, dynamic=False, torch 2.13.0.
BREAKS = {
    "t5": 3,
    "whisper": 3,
    "bart": 3,
    "marian": 3,
    "blenderbot": 3,
    "biogpt": 2,
    "pegasus": 2,
    "layoutlmv3": 2,
}
ROWS: dict[str, Callable[[Any], Built]] = {
    row.__name__: row for row in (t5, whisper, bart, marian, blenderbot, biogpt, pegasus, layoutlmv3)
}


def build(name: str) -> Built:
    """The model of row `name` in eval mode and inputs for it, the same in every process."""
    import transformers

    torch.manual_seed(0)
    model, inputs = ROWS[name](transformers)
    return model.eval(), inputs

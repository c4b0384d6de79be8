"""Small models that are trained: each with its batches, words, speech or pictures by chance, and labels."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
import transformers as library

BATCH, LENGTH, WORDS = 2, 8, 99
SIZES = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2} | {
    **{"decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "vocab_size": WORDS},
}
ENCODER = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
Batches = Callable[[], dict[str, torch.Tensor]]
Model = tuple[torch.nn.Module, Batches]


def words() -> torch.Tensor:
    return torch.randint(4, WORDS, (BATCH, LENGTH))


def spoken() -> dict[str, torch.Tensor]:
    return {"input_ids": words(), "labels": words()}


def bart(kind: str = "Bart") -> Model:
    """Also its relatives, by the names of their classes."""
    config = getattr(library, f"{kind}Config")(
        **SIZES, max_position_embeddings=32, decoder_start_token_id=3, pad_token_id=1
    )
    model = getattr(library, "MarianMTModel" if kind == "Marian" else f"{kind}ForConditionalGeneration")(config)
    return model, spoken


def t5() -> Model:
    config = library.T5Config(
        **{"vocab_size": WORDS, "d_model": 16, "d_ff": 16, "d_kv": 8, "num_layers": 2, "num_heads": 2},
        decoder_start_token_id=0,
    )
    return library.T5ForConditionalGeneration(config), spoken


def opt() -> Model:
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "ffn_dim": 16, "num_attention_heads": 2}
    config = library.OPTConfig(**sizes, word_embed_proj_dim=16, vocab_size=WORDS, max_position_embeddings=32)
    return library.OPTForCausalLM(config), spoken


def whisper() -> Model:
    tokens = {"decoder_start_token_id": 3, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = library.WhisperConfig(**SIZES, **tokens, max_source_positions=20, max_target_positions=20, num_mel_bins=8)
    model = library.WhisperForConditionalGeneration(config)
    return model, lambda: {"input_features": torch.randn(BATCH, 8, 40), "labels": words()}


def wav2vec2() -> Model:
    """It hides parts of what it hears, by numbers of numpy's."""
    convolutions = {"conv_dim": (8, 8), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2}
    hidden = {"mask_time_prob": 0.2, "mask_time_length": 2, "layerdrop": 0.0}
    groups = {"num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2}
    config = library.Wav2Vec2Config(**ENCODER, **convolutions, **hidden, **groups, vocab_size=WORDS)
    return library.Wav2Vec2ForCTC(config), lambda: {
        "input_values": torch.randn(BATCH, 800),
        "labels": torch.randint(4, WORDS, (BATCH, 4)),
    }


def paligemma() -> Model:
    """Four words of each text stand for a picture."""
    pictures = {**ENCODER, "image_size": 16, "patch_size": 8, "projection_dim": 16, "model_type": "siglip_vision_model"}
    text = {**ENCODER, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": WORDS, "model_type": "gemma"}
    config = library.PaliGemmaConfig(
        vision_config=pictures, text_config=text, projection_dim=16, hidden_size=16, image_token_index=WORDS - 1
    )

    def batch() -> dict[str, torch.Tensor]:
        text = torch.cat([torch.full((BATCH, 4), WORDS - 1), torch.randint(4, WORDS - 1, (BATCH, LENGTH))], 1)
        masks = {"attention_mask": torch.ones_like(text), "token_type_ids": torch.zeros_like(text)}
        return {"input_ids": text, "labels": text, "pixel_values": torch.randn(BATCH, 3, 16, 16), **masks}

    return library.PaliGemmaForConditionalGeneration(config), batch


def mixtral() -> Model:
    """Of eight experts at most four are hit by two words."""
    config = library.MixtralConfig(
        **ENCODER, num_key_value_heads=2, vocab_size=WORDS, num_local_experts=8, num_experts_per_tok=2
    )

    def batch() -> dict[str, torch.Tensor]:
        ids = torch.randint(4, WORDS, (1, 2))
        return {"input_ids": ids, "labels": ids}

    return library.MixtralForCausalLM(config), batch


MODELS: dict[str, Callable[[], Model]] = {
    **{make.__name__: make for make in (bart, mixtral, opt, paligemma, t5, wav2vec2, whisper)},
    **{kind.lower(): functools.partial(bart, kind) for kind in ("Blenderbot", "Marian", "Pegasus")},
}

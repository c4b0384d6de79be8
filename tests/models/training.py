"""A plain user's script: three training steps of small models, in eager and compiled; prints what differs, as JSON.

Arguments: each a model and a backend, "bart eager".  Inductor draws random numbers as eager does where it is asked to
(`fallback_random`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import torch
import transformers as library
from judge import Counting

BATCH, LENGTH, WORDS = 2, 8, 99
SIZES = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2} | {
    **{"decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "vocab_size": WORDS},
}
Model = tuple[torch.nn.Module, dict[str, torch.Tensor]]


def words() -> torch.Tensor:
    return torch.randint(4, WORDS, (BATCH, LENGTH))


def bart() -> Model:
    model = library.BartForConditionalGeneration(library.BartConfig(**SIZES, max_position_embeddings=32))
    return model, {"input_ids": words(), "labels": words()}


def opt() -> Model:
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "ffn_dim": 16,
        "num_attention_heads": 2,
        "word_embed_proj_dim": 16,
    }
    config = library.OPTConfig(**sizes, vocab_size=WORDS, max_position_embeddings=32)
    return library.OPTForCausalLM(config), {"input_ids": words(), "labels": words()}


def whisper() -> Model:
    tokens = {"decoder_start_token_id": 3, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = library.WhisperConfig(**SIZES, **tokens, max_source_positions=20, max_target_positions=20, num_mel_bins=8)
    model = library.WhisperForConditionalGeneration(config)
    return model, {"input_features": torch.randn(BATCH, 8, 40), "labels": words()}


def mixtral() -> Model:
    """Of eight experts at most four are hit by two words."""
    sizes = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
    }
    config = library.MixtralConfig(**sizes, vocab_size=WORDS, num_local_experts=8, num_experts_per_tok=2)
    ids = torch.randint(4, WORDS, (1, 2))
    return library.MixtralForCausalLM(config), {"input_ids": ids, "labels": ids}


def step(model: torch.nn.Module, called: Callable[..., Any], inputs: dict[str, torch.Tensor], seed: int) -> list[Any]:
    """The loss, the gradients, and the state of the random numbers afterwards."""
    model.zero_grad()
    torch.manual_seed(seed)
    loss = called(**inputs).loss
    loss.backward()
    gradients = [None if parameter.grad is None else parameter.grad.clone() for parameter in model.parameters()]
    return [loss.detach(), gradients, torch.get_rng_state()]


def train(make: Callable[[], Model], backend: str) -> dict[str, Any]:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    model, inputs = make()
    counting, differences = Counting(backend), []
    compiled = torch.compile(model.train(), backend=counting)
    tolerance = 0.0 if backend == "eager" else 1e-4
    for seed in range(3):
        found, expected = step(model, compiled, inputs, seed), step(model, model, inputs, seed)
        try:
            torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
        except AssertionError as error:
            differences.append(str(error))
    breaks = sum(torch._dynamo.utils.counters["graph_break"].values())
    absent = any(parameter.grad is None for parameter in model.parameters())
    return {"absent": absent, "graphs": counting.graphs, "breaks": breaks, "differences": differences}


MODELS = {make.__name__: make for make in (bart, opt, whisper, mixtral)}
torch._inductor.config.fallback_random = True
print(json.dumps({asked: train(MODELS[asked.partition(" ")[0]], asked.partition(" ")[2]) for asked in sys.argv[1:]}))

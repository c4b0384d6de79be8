"""Libraries with few cases each, by the part of the name before the colon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import Case, image


def _einops(pattern: str, **sizes: int) -> Callable[[], Callable[..., Any]]:
    def build() -> Callable[..., Any]:
        import einops

        return lambda x: einops.rearrange(x, pattern, **sizes)

    return build


def _x_transformers(**given: Any) -> Callable[[], Callable[..., Any]]:
    def build() -> Callable[..., Any]:
        import x_transformers

        layers = x_transformers.Decoder(dim=16, depth=2, heads=2, attn_dim_head=8, **given)
        return x_transformers.TransformerWrapper(num_tokens=20, max_seq_len=16, attn_layers=layers).eval()

    return build


def _tokens() -> tuple[torch.Tensor]:
    return (torch.randint(0, 20, (1, 8)),)


def _sam() -> Callable[..., Any]:
    from segment_anything.modeling import ImageEncoderViT

    return ImageEncoderViT(
        img_size=64, patch_size=16, embed_dim=16, depth=2, num_heads=2, out_chans=8, window_size=2, use_rel_pos=True
    ).eval()


def _sam_prompts() -> Callable[..., Any]:
    from segment_anything.modeling import PromptEncoder

    encoder = PromptEncoder(8, (4, 4), (64, 64), 8).eval()
    return lambda points, labels: encoder((points, labels), None, None)


def _sam_masks() -> Callable[..., Any]:
    from segment_anything.utils import amg

    return lambda masks: (amg.batched_mask_to_box(masks > 0.5), amg.calculate_stability_score(masks, 0.5, 0.1))


def _gp() -> Callable[..., Any]:
    import gpytorch

    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    return lambda x: kernel(x).to_dense()


def _gp_likelihood() -> Callable[..., Any]:
    import gpytorch

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    normal = gpytorch.distributions.MultivariateNormal
    return lambda m: likelihood(normal(m, torch.eye(4))).mean


def _pyro(name: str, *arguments: Any) -> Callable[[], Callable[..., Any]]:
    def build() -> Callable[..., Any]:
        from pyro import distributions

        return lambda x: getattr(distributions, name)(*arguments).log_prob(x)

    return build


def _pyro_transform(name: str, *arguments: Any) -> Callable[[], Callable[..., Any]]:
    def build() -> Callable[..., Any]:
        from pyro.distributions import transforms

        transform = getattr(transforms, name)(*arguments)
        return transform

    return build


def _chronos() -> Callable[..., Any]:
    from chronos.chronos import ChronosConfig

    config = ChronosConfig(
        "MeanScaleUniformBins",
        {"low_limit": -15.0, "high_limit": 15.0},
        16,
        4,
        20,
        2,
        0,
        1,
        True,
        "seq2seq",
        4,
        1.0,
        10,
        1.0,
    )
    tokenizer = config.create_tokenizer()
    return tokenizer.context_input_transform


def _chronos_bolt() -> Callable[..., Any]:
    from chronos.chronos_bolt import InstanceNorm, Patch

    patch, norm = Patch(4, 4), InstanceNorm()
    return lambda x: patch(norm(x)[0])


def _pooling(mode: str) -> Callable[[], Callable[..., Any]]:
    def build() -> Callable[..., Any]:
        from sentence_transformers.models import Pooling

        return Pooling(8, pooling_mode=mode)

    return build


def _pooled() -> tuple[dict[str, torch.Tensor]]:
    return (
        {"token_embeddings": torch.rand(2, 5, 8), "attention_mask": torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])},
    )


def _similarity(name: str) -> Callable[[], Callable[..., Any]]:
    def build() -> Callable[..., Any]:
        from sentence_transformers import util

        return getattr(util, name)  # type: ignore[no-any-return]

    return build


CASES: dict[str, Case] = {
    "einops: rearrange": (_einops("b c (h p) (w q) -> b (h w) (c p q)", p=4, q=4), lambda: (image(),)),
    "x-transformers: decoder": (_x_transformers(), _tokens),
    "x-transformers: rotary, flash": (_x_transformers(rotary_pos_emb=True, attn_flash=True), _tokens),
    "x-transformers: alibi": (_x_transformers(alibi_pos_bias=True), _tokens),
    "x-transformers: sparse top-k": (_x_transformers(attn_sparse_topk=2), _tokens),
    "segment-anything: image encoder": (_sam, lambda: (image(side=64),)),
    "segment-anything: prompt encoder": (_sam_prompts, lambda: (torch.rand(1, 2, 2) * 60, torch.tensor([[1, 0]]))),
    "segment-anything: masks": (_sam_masks, lambda: (torch.rand(2, 8, 8),)),
    "gpytorch: RBF kernel": (_gp, lambda: (torch.rand(4, 2),)),
    "gpytorch: likelihood": (_gp_likelihood, lambda: (torch.rand(4),)),
    "pyro: Normal": (_pyro("Normal", 0.0, 1.0), lambda: (torch.rand(4),)),
    "pyro: Categorical": (_pyro("Categorical", torch.ones(4) / 4), lambda: (torch.tensor([1, 2]),)),
    "pyro: ZeroInflatedPoisson": (lambda: _zero_inflated, lambda: (torch.tensor([0.0, 2.0]),)),
    "pyro: VonMises": (_pyro("VonMises", 0.0, 1.0), lambda: (torch.rand(4),)),
    "pyro: Planar": (_pyro_transform("Planar", 2), lambda: (torch.rand(3, 2),)),
    "chronos: tokenizer": (_chronos, lambda: (torch.rand(2, 12),)),
    "chronos: patches": (_chronos_bolt, lambda: (torch.rand(2, 12),)),
    "sentence-transformers: mean": (_pooling("mean"), _pooled),
    "sentence-transformers: max": (_pooling("max"), _pooled),
    "sentence-transformers: last token": (_pooling("lasttoken"), _pooled),
    "sentence-transformers: cos_sim": (_similarity("cos_sim"), lambda: (torch.rand(3, 8), torch.rand(2, 8))),
    "sentence-transformers: semantic_search": (
        _similarity("semantic_search"),
        lambda: (torch.rand(3, 8), torch.rand(5, 8)),
    ),
}


def _zero_inflated(x: torch.Tensor) -> torch.Tensor:
    from pyro import distributions

    return distributions.ZeroInflatedPoisson(torch.tensor(2.0), gate=torch.tensor(0.3)).log_prob(x)  # type: ignore[no-any-return]

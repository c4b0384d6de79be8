"""diffusers: small models, steps of schedulers, a denoising loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffusers
import torch

from . import Case


def _scheduler(name: str, steps: int = 20, at: int = 1, **given: Any) -> Case:
    """One step of a scheduler, at the step of that number, and from there on in the calls that follow."""

    def build() -> Callable[..., Any]:
        scheduler = getattr(diffusers, name)(**given)
        scheduler.set_timesteps(steps)

        def step(noise: torch.Tensor, sample: torch.Tensor) -> Any:
            return scheduler.step(noise, scheduler.timesteps[at], sample, return_dict=False)[0]

        return step

    return build, lambda: (torch.randn(1, 4, 8, 8), torch.randn(1, 4, 8, 8))


def _unet() -> torch.nn.Module:
    return diffusers.UNet2DConditionModel(
        sample_size=8,
        block_out_channels=(8, 16),
        layers_per_block=1,
        norm_num_groups=4,
        cross_attention_dim=8,
        attention_head_dim=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    ).eval()


def _conditioned() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.randn(1, 4, 8, 8), torch.tensor([10]), torch.randn(1, 3, 8)


def _autoencoder() -> torch.nn.Module:
    return diffusers.AutoencoderKL(
        block_out_channels=(8, 8),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=4,
    ).eval()


def _loop() -> Callable[..., torch.Tensor]:
    unet, scheduler = _unet(), diffusers.DDIMScheduler()
    scheduler.set_timesteps(3)

    def denoise(sample: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        for t in scheduler.timesteps:
            noise = unet(sample, t, text, return_dict=False)[0]
            sample = scheduler.step(noise, t, sample, return_dict=False)[0]
        return sample

    return denoise


CASES: dict[str, Case] = {
    **{
        f"{name}.step": _scheduler(name)
        for name in (
            "DDIMScheduler",
            "DDPMScheduler",
            "DPMSolverMultistepScheduler",
            "DPMSolverSinglestepScheduler",
            "EulerDiscreteScheduler",
            "EulerAncestralDiscreteScheduler",
            "FlowMatchEulerDiscreteScheduler",
            "HeunDiscreteScheduler",
            "KDPM2DiscreteScheduler",
            "LMSDiscreteScheduler",
            "PNDMScheduler",
            "UniPCMultistepScheduler",
            "DEISMultistepScheduler",
            "LCMScheduler",
        )
    },
    "UNet2DConditionModel": (_unet, _conditioned),
    "UNet2DConditionModel, timestep a number": (_unet, lambda: (torch.randn(1, 4, 8, 8), 10, torch.randn(1, 3, 8))),
    "AutoencoderKL": (_autoencoder, lambda: (torch.rand(1, 3, 16, 16),)),
    "VQModel": (
        lambda: diffusers.VQModel(block_out_channels=(8,), norm_num_groups=4, num_vq_embeddings=8).eval(),
        lambda: (torch.rand(1, 3, 16, 16),),
    ),
    "Transformer2DModel": (
        lambda: diffusers.Transformer2DModel(2, 4, in_channels=8, norm_num_groups=4).eval(),
        lambda: (torch.rand(1, 8, 4, 4),),
    ),
    "DiTTransformer2DModel": (
        lambda: diffusers.DiTTransformer2DModel(2, 4, 4, num_layers=1, sample_size=8, norm_num_groups=4).eval(),
        lambda: (torch.rand(1, 4, 8, 8), torch.tensor([3]), torch.tensor([2])),
    ),
    "denoising loop": (_loop, lambda: (torch.randn(1, 4, 8, 8), torch.randn(1, 3, 8))),
}

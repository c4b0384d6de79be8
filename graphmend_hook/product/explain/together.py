"""Libraries that compute with another one's code: which belong together where either is mended, as data.

Measured by `bench.ecosystem`, whose cases are mended so; `explain` proposes the whole set for a break in one of them.
"""

from __future__ import annotations

from importlib.util import find_spec

# By library, those of its dependencies that its models call while they are compiled.
TOGETHER: dict[str, tuple[str, ...]] = {
    "accelerate": ("transformers",),
    "chronos": ("transformers",),
    "diffusers": ("transformers",),
    "gpytorch": ("linear_operator",),
    "monai": ("einops",),
    "peft": ("transformers",),
    "segmentation_models_pytorch": ("timm",),
    "sentence_transformers": ("transformers",),
    "torchsde": ("torchdiffeq",),
    "trl": ("transformers",),
    "ultralytics": ("torchvision",),
    "vector_quantize_pytorch": ("einops", "einx", "torch_einops_utils"),
    "x_transformers": ("einops", "torch_einops_utils"),
}


def default_set(library: str) -> list[str]:
    """The library, and what is installed of those that belong to it."""
    return [library, *(other for other in TOGETHER.get(library, ()) if find_spec(other) is not None)]

"""Cases of other libraries than transformers, without the hook and with it: ``python -m bench.ecosystem``."""

from __future__ import annotations

# By module of `cases`: what is mended, the library and those that it needs.
MODULES: dict[str, tuple[str, ...]] = {
    "diffusers": ("diffusers", "transformers"),
    "kornia": ("kornia",),
    "monai": ("monai", "einops"),
    "nflows": ("nflows",),
    "normflows": ("normflows",),
    "others": (
        *("chronos", "einops", "gpytorch", "linear_operator", "pyro", "segment_anything", "sentence_transformers"),
        *("torch_einops_utils", "x_transformers"),
    ),
    "segmentation_models_pytorch": ("segmentation_models_pytorch", "timm"),
    "timm": ("timm",),
    "torch_geometric": ("torch_geometric",),
    "torchdiffeq": ("torchdiffeq",),
    "torchmetrics": ("torchmetrics",),
    "torchsde": ("torchsde", "torchdiffeq"),
    "torchvision": ("torchvision",),
    "ultralytics": ("ultralytics", "torchvision"),
    "vector_quantize_pytorch": ("vector_quantize_pytorch", "einops", "einx", "torch_einops_utils"),
}

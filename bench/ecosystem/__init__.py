"""Cases of other libraries than transformers, without the hook and with it: ``python -m bench.ecosystem``."""

from __future__ import annotations

from graphmend_hook.product.explain.together import TOGETHER

_OF_ONE = (
    *("diffusers", "kornia", "monai", "nflows", "normflows", "segmentation_models_pytorch", "timm", "torch_geometric"),
    *("torchdiffeq", "torchmetrics", "torchsde", "torchvision", "ultralytics", "vector_quantize_pytorch"),
)
_OTHERS = ("chronos", "gpytorch", "pyro", "segment_anything", "sentence_transformers", "x_transformers")
# By module of `cases`: what is mended, the library and those that belong to it.
MODULES: dict[str, tuple[str, ...]] = {
    **{library: (library, *TOGETHER.get(library, ())) for library in _OF_ONE},
    "others": tuple(dict.fromkeys(each for library in _OTHERS for each in (library, *TOGETHER.get(library, ())))),
}

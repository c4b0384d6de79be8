"""segmentation_models_pytorch: models, losses, metrics."""

from __future__ import annotations

import segmentation_models_pytorch as smp
import torch

from . import Case, image


def _model(name: str, side: int = 64, **given: object) -> Case:
    return lambda: getattr(smp, name)("resnet18", encoder_weights=None, **given).eval(), lambda: (image(side=side),)


def _masks() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(2, 1, 8, 8), torch.randint(0, 2, (2, 1, 8, 8))


CASES: dict[str, Case] = {
    name: _model(name)
    for name in (
        "Unet",
        "UnetPlusPlus",
        "MAnet",
        "Linknet",
        "FPN",
        "PSPNet",
        "DeepLabV3Plus",
        "UPerNet",
        "Segformer",
    )
} | {
    "PAN": _model("PAN", 128),
    "DiceLoss": (lambda: smp.losses.DiceLoss("binary"), _masks),
    "JaccardLoss": (lambda: smp.losses.JaccardLoss("binary"), _masks),
    "LovaszLoss": (lambda: smp.losses.LovaszLoss("binary"), _masks),
    "FocalLoss": (lambda: smp.losses.FocalLoss("binary"), lambda: (_masks()[0], _masks()[1].float())),
    "TverskyLoss": (lambda: smp.losses.TverskyLoss("binary"), _masks),
    "MCCLoss": (smp.losses.MCCLoss, lambda: (_masks()[0].sigmoid(), _masks()[1].float())),
    "get_stats": (lambda: lambda a, b: smp.metrics.get_stats(a.sigmoid(), b, "binary", threshold=0.5), _masks),
}

"""timm: models of families that decide something while they run, layers, losses."""

from __future__ import annotations

import timm
import timm.layers
import timm.loss
import torch

from . import Case, image, labels


def _model(name: str, side: int = 64, train: bool = False, **given: object) -> Case:
    return lambda: timm.create_model(name, pretrained=False, num_classes=4, **given).train(train), lambda: (
        image(2, side=side),
    )


CASES: dict[str, Case] = {
    name: _model(name)
    for name in (
        "resnet18",
        "convnext_atto",
        "efficientnet_b0",
        "regnetx_002",
        "ghostnet_050",
        "mobilevit_xxs",
        "edgenext_xx_small",
    )
} | {
    "vit_tiny, dynamic size": _model("vit_tiny_patch16_224", 32, dynamic_img_size=True),
    "vit_tiny, patch dropout": _model("vit_tiny_patch16_224", 224, True, patch_drop_rate=0.5),
    "swin_tiny": _model("swin_tiny_patch4_window7_224", 224),
    "levit_128s": _model("levit_128s", 224),
    "xcit_nano": _model("xcit_nano_12_p16_224", 64),
    "beit": _model("beit_base_patch16_224", 224, depth=1),
    "naflexvit": _model("naflexvit_base_patch16_gap", 64, depth=1),
    "drop_path, training": (lambda: timm.layers.DropPath(0.3).train(), lambda: (image(4),)),
    "DropBlock2d, training": (lambda: timm.layers.DropBlock2d(0.3, 3).train(), lambda: (image(4),)),
    "AsymmetricLossMultiLabel": (
        timm.loss.AsymmetricLossMultiLabel,
        lambda: (torch.randn(3, 4), torch.randint(0, 2, (3, 4))),
    ),
    "BinaryCrossEntropy": (
        lambda: timm.loss.BinaryCrossEntropy(target_threshold=0.2),
        lambda: (torch.randn(3, 4), labels(3, 4)),
    ),
    "JsdCrossEntropy": (lambda: timm.loss.JsdCrossEntropy(3), lambda: (torch.randn(6, 4), labels(6, 4))),
}

"""torchvision: detection, segmentation, transforms, operations."""

from __future__ import annotations

from typing import Any

import torch
from torchvision import models, ops
from torchvision.models import detection, optical_flow, segmentation
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional

from . import Case, boxes, image, labels

_NONE: dict[str, Any] = {"weights": None, "weights_backbone": None}


def _scenes() -> tuple[list[torch.Tensor]]:
    return ([torch.rand(3, 64, 64)],)


def _scored() -> tuple[torch.Tensor, torch.Tensor]:
    return boxes(20), torch.rand(20)


def _feature_maps() -> tuple[dict[str, torch.Tensor], list[torch.Tensor], list[tuple[int, int]]]:
    return {"0": torch.rand(1, 4, 16, 16), "1": torch.rand(1, 4, 8, 8)}, [boxes(6)], [(32, 32)]


CASES: dict[str, Case] = {
    "fasterrcnn": (
        lambda: detection.fasterrcnn_mobilenet_v3_large_320_fpn(
            **_NONE, num_classes=4, min_size=64, max_size=64
        ).eval(),
        _scenes,
    ),
    "retinanet": (
        lambda: detection.retinanet_resnet50_fpn(**_NONE, num_classes=4, min_size=64, max_size=64).eval(),
        _scenes,
    ),
    "ssdlite": (lambda: detection.ssdlite320_mobilenet_v3_large(**_NONE, num_classes=4).eval(), _scenes),
    "ssd": (lambda: detection.ssd300_vgg16(**_NONE, num_classes=4).eval(), _scenes),
    "fcos": (lambda: detection.fcos_resnet50_fpn(**_NONE, num_classes=4, min_size=64, max_size=64).eval(), _scenes),
    "maskrcnn": (
        lambda: detection.maskrcnn_resnet50_fpn(**_NONE, num_classes=4, min_size=64, max_size=64).eval(),
        _scenes,
    ),
    "keypointrcnn": (
        lambda: detection.keypointrcnn_resnet50_fpn(**_NONE, num_classes=2, min_size=64, max_size=64).eval(),
        _scenes,
    ),
    "maskrcnn, without gradients": (
        lambda: (
            detection.maskrcnn_resnet50_fpn(**_NONE, num_classes=4, min_size=64, max_size=64)
            .eval()
            .requires_grad_(False)
        ),
        _scenes,
    ),
    "keypointrcnn, without gradients": (
        lambda: (
            detection.keypointrcnn_resnet50_fpn(**_NONE, num_classes=2, min_size=64, max_size=64)
            .eval()
            .requires_grad_(False)
        ),
        _scenes,
    ),
    "deeplabv3": (lambda: segmentation.deeplabv3_mobilenet_v3_large(**_NONE).eval(), lambda: (image(side=64),)),
    "lraspp": (lambda: segmentation.lraspp_mobilenet_v3_large(**_NONE).eval(), lambda: (image(side=64),)),
    "googlenet, training": (
        lambda: models.googlenet(weights=None, init_weights=False).train(),
        lambda: (image(2, side=64),),
    ),
    "swin_t, training": (lambda: models.swin_t(weights=None).train(), lambda: (image(side=64),)),
    "raft_small": (lambda: optical_flow.raft_small(weights=None).eval(), lambda: (image(side=128), image(side=128))),
    "nms": (lambda: lambda b, s: ops.nms(b, s, 0.5), _scored),
    "batched_nms": (lambda: lambda b, s: ops.batched_nms(b, s, torch.arange(20) % 3, 0.5), _scored),
    "remove_small_boxes": (lambda: lambda b: b[ops.remove_small_boxes(b, 5.0)], lambda: (boxes(20),)),
    "masks_to_boxes": (lambda: ops.masks_to_boxes, lambda: (torch.rand(3, 16, 16) > 0.5,)),
    "roi_align": (lambda: lambda x, b: ops.roi_align(x, [b], 4), lambda: (image(), boxes(5))),
    "roi_pool": (lambda: lambda x, b: ops.roi_pool(x, [b], 4), lambda: (image(), boxes(5))),
    "MultiScaleRoIAlign": (lambda: ops.MultiScaleRoIAlign(["0", "1"], 3, 2), _feature_maps),
    "generalized_box_iou_loss": (
        lambda: lambda a, b: ops.generalized_box_iou_loss(a, b, reduction="mean"),
        lambda: (boxes(5), boxes(5)),
    ),
    "complete_box_iou_loss": (lambda: ops.complete_box_iou_loss, lambda: (boxes(5), boxes(5))),
    "sigmoid_focal_loss": (
        lambda: lambda a, b: ops.sigmoid_focal_loss(a, b, reduction="mean"),
        lambda: (torch.randn(6), labels(6, 2).float()),
    ),
    "StochasticDepth": (lambda: ops.StochasticDepth(0.3, "row").train(), lambda: (image(4),)),
    "DropBlock2d": (lambda: ops.DropBlock2d(0.3, 3).train(), lambda: (image(4),)),
    "RandomHorizontalFlip": (lambda: v2.RandomHorizontalFlip(0.5), lambda: (image(),)),
    "RandomErasing": (lambda: v2.RandomErasing(0.5), lambda: (image(),)),
    "RandomResizedCrop": (lambda: v2.RandomResizedCrop(16), lambda: (image(),)),
    "RandomCrop": (lambda: v2.RandomCrop(16), lambda: (image(),)),
    "RandomRotation": (lambda: v2.RandomRotation(30), lambda: (image(),)),
    "RandomAffine": (lambda: v2.RandomAffine(30, (0.1, 0.1)), lambda: (image(),)),
    "RandomPerspective": (v2.RandomPerspective, lambda: (image(),)),
    "ColorJitter": (lambda: v2.ColorJitter(0.2, 0.2, 0.2, 0.1), lambda: (image(),)),
    "GaussianBlur": (lambda: v2.GaussianBlur(3), lambda: (image(),)),
    "GaussianNoise": (v2.GaussianNoise, lambda: (image(),)),
    "MixUp": (lambda: v2.MixUp(num_classes=4), lambda: (image(4), labels(4, 4))),
    "CutMix": (lambda: v2.CutMix(num_classes=4), lambda: (image(4), labels(4, 4))),
    "Resize and Normalize": (
        lambda: v2.Compose([v2.Resize(16), v2.CenterCrop(12), v2.Normalize([0.5] * 3, [0.2] * 3)]),
        lambda: (image(),),
    ),
    "adjust_hue": (lambda: lambda x: functional.adjust_hue(x, 0.1), lambda: (image(),)),
    "autocontrast": (lambda: functional.autocontrast, lambda: (image(),)),
    "equalize": (lambda: functional.equalize, lambda: ((image() * 255).to(torch.uint8),)),
    "posterize": (lambda: lambda x: functional.posterize(x, 3), lambda: ((image() * 255).to(torch.uint8),)),
    "elastic": (lambda: lambda x: functional.elastic(x, torch.zeros(1, 32, 32, 2)), lambda: (image(),)),
}

"""ultralytics: models of its configurations, losses, boxes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from ultralytics.nn import tasks
from ultralytics.utils import loss, metrics, nms, ops

from . import Case, boxes, image


def _model(name: str, kind: str = "DetectionModel") -> Case:
    return lambda: getattr(tasks, kind)(name, verbose=False).eval(), lambda: (image(side=64),)


def _training() -> Callable[..., object]:
    return tasks.DetectionModel("yolov8n.yaml", verbose=False).train()


CASES: dict[str, Case] = {
    "yolov8n": _model("yolov8n.yaml"),
    "yolo11n": _model("yolo11n.yaml"),
    "yolov5n": _model("yolov5n.yaml"),
    "yolov10n": _model("yolov10n.yaml"),
    "yolov8n-seg": _model("yolov8n-seg.yaml", "SegmentationModel"),
    "yolov8n-pose": _model("yolov8n-pose.yaml", "PoseModel"),
    "yolov8n-obb": _model("yolov8n-obb.yaml", "OBBModel"),
    "yolov8n-cls": _model("yolov8n-cls.yaml", "ClassificationModel"),
    "rtdetr-resnet50": _model("rtdetr-resnet50.yaml", "RTDETRDetectionModel"),
    "yolov8n, training": (_training, lambda: (image(2, side=64),)),
    "bbox_iou": (lambda: lambda a, b: metrics.bbox_iou(a, b, xywh=False, CIoU=True), lambda: (boxes(5), boxes(5))),
    "box_iou": (lambda: metrics.box_iou, lambda: (boxes(5), boxes(4))),
    "probiou": (lambda: metrics.probiou, lambda: (torch.rand(4, 5) + 1, torch.rand(4, 5) + 1)),
    "xywh2xyxy": (lambda: ops.xywh2xyxy, lambda: (boxes(5),)),
    "scale_boxes": (lambda: lambda b: ops.scale_boxes((32, 32), b, (64, 64)), lambda: (boxes(5),)),
    "crop_mask": (lambda: ops.crop_mask, lambda: (torch.rand(5, 32, 32), boxes(5))),
    "non_max_suppression": (
        lambda: lambda p: nms.non_max_suppression(p, 0.25, 0.45),
        lambda: (torch.cat([torch.rand(1, 4, 20) * 32, torch.rand(1, 3, 20)], 1),),
    ),
    "VarifocalLoss": (
        loss.VarifocalLoss,
        lambda: (torch.randn(2, 4, 3), torch.rand(2, 4, 3), torch.rand(2, 4, 3)),
    ),
    "DFLoss": (lambda: loss.DFLoss(8), lambda: (torch.randn(12, 8), torch.rand(3, 4) * 6)),
}

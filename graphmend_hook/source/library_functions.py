"""Functions of libraries that compute as an operator does, in loops that go round as often as data says, as data.

Of their loops no graph can be made, or their operators' own kernels for fake tensors say too much: in a graph, each is
one operator, which calls the function. `tests/compiled/test_library_operators.py` holds what is said here against what
they do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

NAMESPACE = "graphmend_hook"  # of the operators in `torch.ops`
_BOXES = {"boxes": "Tensor", "scores": "Tensor", "iou_threshold": "float"}
_CLASSES = {"boxes": "Tensor", "scores": "Tensor", "idxs": "Tensor", "iou_threshold": "float"}


@dataclass(frozen=True)
class LibraryOperator:
    """A function whose results are new tensors, and which does nothing else.

    module, name: where it is.
    parameters: by name, their types in the schema of an operator; all tensors have the same number of rows.
    result: what it gives, on fake tensors: a function of a length that the data decides, and of the parameters.
    returns: the same in the schema.
    checked_by: an operator of `torch.ops` that refuses the same tensors, and what it is given.
    has_gradients: results may, and are laid out as the tensors are; then it is an operator only where no gradients are
        recorded and the tensors are contiguous.
    is_as_long_as_data: does the data decide a length of the result?
    always: is it one whatever the sizes are?  Else only where the data decides one of them.
    """

    module: str
    name: str
    parameters: dict[str, str]
    result: Callable[..., Any]
    returns: str = "Tensor"
    checked_by: tuple[str, tuple[str, ...]] | None = None
    has_gradients: bool = False
    is_as_long_as_data: bool = False
    always: bool = True

    @property
    def schema(self) -> str:
        """As `torch.library` takes it."""
        return f"({', '.join(f'{kind} {name}' for name, kind in self.parameters.items())}) -> {self.returns}"


def _kept(module: str, name: str, parameters: dict[str, str], always: bool = True) -> LibraryOperator:
    """A function that gives the places of the boxes that it keeps."""
    return LibraryOperator(
        module,
        name,
        parameters,
        lambda length, boxes, *_others: boxes.new_empty((length,)).long(),
        # Its own kernel for fake tensors says that two boxes at least are kept.
        checked_by=("torchvision::nms", ("boxes", "scores", "iou_threshold")),
        is_as_long_as_data=True,
        always=always,
    )


def _distances(name: str) -> LibraryOperator:
    """A function that gives a picture of distances: it grows them by one step after the other, until none is left."""
    return LibraryOperator(
        "kornia.contrib.distance_transform",
        name,
        {"image": "Tensor", "kernel_size": "int", "h": "float"},
        lambda _length, image, *_others: image.new_empty(image.shape),
        has_gradients=True,
    )


OPERATORS = (
    _distances("_distance_transform_2d_impl"),
    _distances("_distance_transform_3d_impl"),
    _kept("torchvision.ops.boxes", "nms", _BOXES),
    _kept("torchvision.ops.boxes", "batched_nms", _CLASSES, always=False),
    _kept("torchvision.ops.boxes", "_batched_nms_vanilla", _CLASSES),
    LibraryOperator(
        "torchvision.models.detection.roi_heads",
        "heatmaps_to_keypoints",
        {"maps": "Tensor", "rois": "Tensor"},
        lambda _length, maps, rois: (
            maps.new_empty((rois.shape[0], 3, maps.shape[1])).float().permute(0, 2, 1),
            maps.new_empty((rois.shape[0], maps.shape[1])).float(),
        ),
        "(Tensor, Tensor)",
        has_gradients=True,
    ),
    LibraryOperator(
        "torchvision.models.detection.roi_heads",
        "paste_masks_in_image",
        {"masks": "Tensor", "boxes": "Tensor", "img_shape": "SymInt[]", "padding": "SymInt"},
        lambda _length, masks, boxes, img_shape, _padding: masks.new_empty((boxes.shape[0], 1, *img_shape)),
        has_gradients=True,
    ),
)
PARAMETERS = {operator.name: (*operator.parameters,) for operator in OPERATORS}
BY_PLACE = {(operator.module, operator.name): operator for operator in OPERATORS}

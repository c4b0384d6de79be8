"""Training as people write it: twenty steps of a loop; prints what it did to the model, as JSON.

Arguments: the backend, or "none", and loops, each with a model: "accumulating bart".  With torchrun, in each of its
processes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import transformers
from judge import Counting
from trained import MODELS, Batches

STEPS = 20
Compile = Callable[[Any], Any]


def digest(tensors: Iterable[torch.Tensor | None]) -> str:
    found = hashlib.sha256()
    for tensor in tensors:
        local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
        found.update(b"none" if local is None else local.detach().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


class Log:
    """The loss and the gradients of each step."""

    def __init__(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        self.parameters, self.losses, self.gradients = [*parameters], [], []

    def take(self, loss: torch.Tensor) -> None:
        self.losses.append(loss.item())
        self.gradients.append(digest(parameter.grad for parameter in self.parameters))


def steps(
    model: torch.nn.Module,
    called: Callable[..., Any],
    batches: Batches,
    *,
    forward: Callable[[], Any] = contextlib.nullcontext,
    backward: Callable[[], Any] = contextlib.nullcontext,
    accumulated: int = 1,
    scaler: torch.amp.GradScaler | None = None,
) -> Log:
    """AdamW with clipped gradients and a schedule; `forward` and `backward`: entered around each."""
    log = Log(parameter for parameter in model.parameters() if parameter.requires_grad)
    optimizer = torch.optim.AdamW(log.parameters, lr=1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=STEPS)
    scaler = scaler or torch.amp.GradScaler("cpu", enabled=False)
    for _ in range(STEPS):
        for _ in range(accumulated):
            with forward():
                loss = called(**batches()).loss / accumulated
            with backward():
                scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(log.parameters, 1.0)
        log.take(loss)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        optimizer.zero_grad()
    return log


def plain(model: torch.nn.Module, batches: Batches, compiled: Compile) -> Log:
    return steps(model, compiled(model), batches)


def accumulating(model: torch.nn.Module, batches: Batches, compiled: Compile) -> Log:
    return steps(model, compiled(model), batches, accumulated=3)


def in_bfloat16(model: torch.nn.Module, batches: Batches, compiled: Compile) -> Log:
    return steps(model, compiled(model), batches, forward=lambda: torch.autocast("cpu", torch.bfloat16))


def in_float16(model: torch.nn.Module, batches: Batches, compiled: Compile) -> Log:
    """Autocast is entered inside of what is compiled."""

    def forward(**batch: torch.Tensor) -> Any:
        with torch.autocast("cpu", torch.float16):
            return model(**batch)

    return steps(model, compiled(forward), batches, scaler=torch.amp.GradScaler("cpu"))


def checkpointed(model: torch.nn.Module, batches: Batches, compiled: Compile) -> Log:
    """Without dropout: PyTorch's eager backend draws other numbers when a checkpoint computes again."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.0
    model.gradient_checkpointing_enable()
    return steps(model, compiled(model), batches)


def with_compiled_autograd(model: torch.nn.Module, batches: Batches, compiled: Compile) -> Log:
    return steps(
        model,
        compiled(model),
        batches,
        backward=lambda: torch._dynamo.compiled_autograd._enable(compiled, dynamic=False),
    )


def whole(model: torch.nn.Module, batches: Batches, compiled: Compile) -> Log:
    """The optimizer's step too is inside of what is compiled."""
    log = Log(model.parameters())
    optimizer = torch.optim.AdamW(log.parameters, lr=1e-3)

    def step(batch: dict[str, torch.Tensor]) -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(log.parameters, 1.0)
        optimizer.step()
        return loss.detach()

    called = compiled(step)
    for _ in range(STEPS):
        log.take(called(batches()))
    return log


def adapted(model: torch.nn.Module, batches: Batches, compiled: Compile) -> Log:
    """LoRA by peft."""
    import peft

    names = {module.rpartition(".")[2] for module, _ in model.named_modules()} & {"q", "v", "q_proj", "v_proj"}
    model = peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules=sorted(names), lora_dropout=0.1))
    return steps(model.train(), compiled(model), batches)


def by_trainer(model: torch.nn.Module, batches: Batches, compiled: Compile) -> Log:
    """Hugging Face's Trainer, which compiles by itself."""
    rows = [{name: row[0] for name, row in batches().items()} for _ in range(2 * STEPS)]
    backend = sys.argv[1]
    arguments = transformers.TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="pytest-"),
        **{"max_steps": STEPS, "per_device_train_batch_size": 2, "save_strategy": "no", "logging_steps": 1},
        **{"report_to": [], "use_cpu": True, "disable_tqdm": True, "dataloader_num_workers": 0},
        torch_compile=backend != "none",
        torch_compile_backend=None if backend == "none" else backend,
    )
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=rows)
    trainer.train()
    log = Log(model.parameters())
    for logged in trainer.state.log_history:
        if "loss" in logged:
            log.losses.append(float(logged["loss"]))
            log.gradients.append(repr(float(logged["grad_norm"])))
    return log


def parallel(model: torch.nn.Module, batches: Batches, compiled: Compile) -> Log:
    """Compiled, then DistributedDataParallel."""
    return steps(model, torch.nn.parallel.DistributedDataParallel(compiled(model)), batches)


def parallel_inside(model: torch.nn.Module, batches: Batches, compiled: Compile) -> Log:
    """DistributedDataParallel, then compiled: PyTorch splits the graph by buckets of gradients."""
    dist._DEFAULT_FIRST_BUCKET_BYTES = 1024
    return steps(model, compiled(torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.002)), batches)


def sharded(model: torch.nn.Module, batches: Batches, compiled: Compile) -> Log:
    """FSDP2: the parameters of each layer, and of what is left, are spread over the processes."""
    from torch.distributed.fsdp import fully_shard

    for module in [*model.modules()]:
        if isinstance(module, torch.nn.ModuleList):
            for layer in module:
                fully_shard(layer)
    fully_shard(model)
    return steps(model, compiled(model), batches)


LOOPS: dict[str, Callable[[torch.nn.Module, Batches, Compile], Log]] = {
    loop.__name__: loop
    for loop in (
        *(plain, accumulating, in_bfloat16, in_float16, checkpointed, with_compiled_autograd, whole, adapted),
        *(by_trainer, parallel, parallel_inside, sharded),
    )
}


@contextlib.contextmanager
def recorded() -> Iterator[list[str]]:
    """The texts of transformers' records, in their order."""
    records: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("transformers")
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)


def run(asked: str, backend: str) -> dict[str, Any]:
    loop, name = asked.split()
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    rank = dist.get_rank() if dist.is_initialized() else 0
    torch.manual_seed(0)
    model, batch = MODELS[name]()
    for seed in (torch.manual_seed, random.seed, np.random.seed):
        seed(rank)
    batches = iter([batch() for _ in range(3 * STEPS)])
    compiled: Compile = lambda given: given  # noqa: E731
    if backend != "none":
        counting = Counting(backend)
        compiled = lambda given: torch.compile(given, backend=counting)  # noqa: E731
    with recorded() as records:
        log = LOOPS[loop](model.train(), lambda: next(batches), compiled)
    drawn = [digest([torch.get_rng_state()]), repr(random.getstate()), repr(np.random.get_state())]
    state = {"losses": log.losses, "gradients": log.gradients, "parameters": digest(model.parameters())}
    counters = torch._dynamo.utils.counters
    graphs = {"graphs": counters["stats"]["unique_graphs"], "breaks": counters["graph_break"].total()}
    return {**state, "drawn": hashlib.sha256("".join(drawn).encode()).hexdigest(), "records": records, **graphs}


def main(backend: str, *asked: str) -> None:
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    found = {each: run(each, backend) for each in asked}
    if dist.is_initialized():
        gathered: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(gathered, found)
        dist.destroy_process_group()
        found = {f"{each}, rank {rank}": one[each] for rank, one in enumerate(gathered) for each in one}
    if os.environ.get("RANK", "0") == "0":
        print(json.dumps(found), flush=True)
    if "RANK" in os.environ:
        # The threads of gloo may abort the process while it ends, without the hook too.
        os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])

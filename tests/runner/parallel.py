"""Models and functions of tensors that several processes share, compared with eager; prints what each rank has seen.

argv: how many ranks to start here.
"""

import logging
import os
import socket
import sys

import torch
import torch.distributed
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

log = logging.getLogger("parallel")


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(4), nn.Linear(4, 8), nn.Linear(8, 4)

    def mlp(self, x):
        return self.down(torch.relu(self.up(self.norm(x))))


class Guarded(Mlp):
    def forward(self, x):
        y = torch.nn.functional.dropout(self.mlp(x), 0.5)
        if torch.isnan(y).any():
            raise ValueError("not a number")
        return x + y


class Clamped(Mlp):
    def forward(self, x):
        for _ in range(2):
            y = self.mlp(x)
            log.warning("%d rows", y.shape[0])
            if torch.isinf(y).any() or y.abs().max().item() > 0.5:
                y = torch.clamp(y, min=-0.5, max=0.5)
            x = x + y
        return x


class Checkpointed(Mlp):
    def forward(self, x):
        y = torch.utils.checkpoint.checkpoint(self.mlp, x, use_reentrant=False)
        with torch.no_grad():
            size = y.norm()
            if not size < 1e6:
                raise ValueError(f"norm {size}")
        return x + y


def of_a_part(d, x):
    y = (d * 2).to_local()
    log.warning("the part's sum is %s", y.sum())
    if torch.isnan(y).any():
        raise ValueError(f"{y[0, 0].item()}")
    if y.sum() > 0:
        y = y + 1
    return y


def of_a_whole(d, x):
    if (d > 1e6).all().full_tensor():
        raise ValueError("large everywhere")
    y = (d @ d.t()).full_tensor()
    if y.sum().item() > 1e6:
        raise ValueError("large")
    if y.sum() > 10:
        x = x * 2
    return DTensor.from_local(x, d.device_mesh, [Replicate()]) + 1


def written_to(d, x):
    y = d.to_local()
    z = y * 2 if y.sum() > 0 else y * 3
    d.add_(1)
    return z


def beside(d, x):
    e = d * torch.rand_like(d)
    if x.sum() > 1e6:
        raise ValueError("large")
    return e + x.shape[0]


def of_all(d, x):
    if (d > 1e6).any():
        raise ValueError("large")
    return d * 2


def columns_and_rows(mesh, kind):
    return parallelize_module(kind(), mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})


def sequence(mesh, kind):
    rows, columns = RowwiseParallel(output_layouts=Shard(0)), ColwiseParallel(input_layouts=Shard(0))
    return parallelize_module(kind(), mesh, {"norm": SequenceParallel(sequence_dim=0), "up": columns, "down": rows})


def sharded(mesh, kind):
    """Columns and rows in one dimension of the mesh, FSDP2 in the other."""
    both = init_device_mesh("cpu", (1, mesh.size()), mesh_dim_names=("data", "tensor"))
    model = columns_and_rows(both["tensor"], kind)
    fully_shard(model, mesh=both["data"])
    return model


MODELS = [
    *((columns_and_rows, kind) for kind in (Guarded, Clamped, Checkpointed)),
    *((way, kind) for way in (sequence, sharded) for kind in (Guarded, Clamped)),
]
FUNCTIONS = (of_a_part, of_a_whole, written_to, beside, of_all)


def plain(value):
    """What this rank has of it, as text: so that NaN is equal to itself."""
    value = value.to_local() if isinstance(value, DTensor) else value
    return str(value.tolist())


def seen(call, inputs, parameters, records):
    """What each call gives, with gradients, or raises; records of logs; and a random number drawn behind it."""
    outcomes = []
    records.clear()
    for number, given in enumerate(inputs()):
        torch.manual_seed(number)
        try:
            result = call(*given)
            outcomes.append([plain(each) for each in (result, *given)])
            if parameters:
                result.sum().backward()
                outcomes[-1] += [plain(each.grad) for each in parameters]
        except ValueError as error:
            outcomes.append(repr(error))
        outcomes.append(torch.rand(()).item())
    return outcomes, [*records]


def compare(name, make, inputs, backend, records):
    torch._dynamo.reset()
    graphs = []
    compiler = torch._dynamo.lookup_backend(backend)

    def counting(graph, examples):
        graphs.append(graph)
        return compiler(graph, examples)

    outcomes = []
    for compiled in (False, True):
        torch.manual_seed(7)
        call, parameters = make()
        call = torch.compile(call, backend=counting, dynamic=False) if compiled else call
        outcomes.append(seen(call, inputs, parameters, records))
    equal = "equal" if outcomes[0] == outcomes[1] else f"NOT EQUAL {outcomes}"
    return f"{name} on {backend}: {len(graphs)} graphs, {equal}"


def rank(number, port, world):
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=number, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    records, handler = [], logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())
    log.addHandler(handler)
    log.propagate = False

    def rows():
        for seed, factor in enumerate((1, float("inf"), -3)):
            x = torch.randn(4, 4, generator=torch.Generator().manual_seed(seed))
            x[0] *= factor  # of the first rank only, where each has its rows
            yield (x,)

    def shared():
        return ((distribute_tensor(x.clone(), mesh, [Shard(0)]), x) for (x,) in rows())

    lines = []
    for backend in ("eager", "aot_eager"):
        for way, kind in MODELS:

            def made(way=way, kind=kind):
                model = way(mesh, kind)
                return model, [*model.parameters()]

            lines.append(compare(f"{way.__name__} {kind.__name__}", made, rows, backend, records))
        lines += [
            compare(function.__name__, lambda function=function: (function, []), shared, backend, records)
            for function in FUNCTIONS
        ]
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    os._exit(0)  # on a busy machine a thread of gloo aborts the end of a rank now and then, without the hook too


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    world = int(sys.argv[1])
    torch.multiprocessing.spawn(rank, (port, world), nprocs=world)

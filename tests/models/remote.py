"""Loads a model with code of its own by transformers' own loader, compiles it, and prints what came of it.

argv: the folder of the model, "config" or "pretrained", and modules for a hook, "" for none.
"""

import json
import logging
import sys

folder, way, modules = sys.argv[1:]
if modules:
    import graphmend_hook

    hook = graphmend_hook.install(modules)
import torch
import transformers

records = []
handler = logging.Handler()
handler.emit = lambda record: records.append(record.getMessage())
transformers.utils.logging.get_logger("transformers_modules").addHandler(handler)
graphs = []


def count(graph, _inputs):
    graphs.append(graph)
    return graph.forward


torch.manual_seed(0)
if way == "config":
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=True)
    model = transformers.AutoModel.from_config(config, trust_remote_code=True)
else:
    model = transformers.AutoModel.from_pretrained(folder, trust_remote_code=True)
model = model.eval().half()
inputs = torch.randn(2, 3, 8, dtype=torch.float16) * 1000
mask = torch.ones(2, 3, dtype=torch.float16)
with torch.no_grad():
    expected = model(inputs, mask)
    compiled = torch.compile(model, backend=count, dynamic=False)
    equal = [torch.equal(compiled(inputs, mask), expected) for _ in range(3)]
    try:
        compiled(inputs, mask * 2)
        error = ""
    except ValueError as raised:
        error = str(raised)
print(
    json.dumps(
        {"graphs": len(graphs), "equal": equal, "records": records, "error": error, "module": type(model).__module__}
    )
)
if modules:
    hook.uninstall()
    mended = [
        record for record in graphmend_hook.product.report.ledger.ledger.records if record.name.endswith("_remote")
    ]
    print(json.dumps({record.name.rpartition(".")[2]: record.status.value for record in mended}))

"""The demo's program, a plain user's script: T5 from a small config, compiled.  It knows nothing of graphmend_hook.

usage: demo_t5.py OUT.json BACKEND
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
import time

START = time.perf_counter()

import torch  # noqa: E402
import transformers  # noqa: E402
from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402

records: list[str] = []


class Recorder(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        place = f"{record.pathname.rpartition('site-packages/')[2]}:{record.lineno} in {record.funcName}"
        records.append(f"{record.levelname} {record.getMessage()} ({place})")


def main(out: str, backend: str) -> None:
    logger = logging.getLogger("transformers")
    logger.handlers[:] = [Recorder()]
    torch.manual_seed(0)
    config = transformers.T5Config(vocab_size=128, d_model=64, d_ff=128, d_kv=32, num_layers=2, num_heads=2)
    model = transformers.T5ForConditionalGeneration(config).eval()
    inputs = {name: torch.randint(0, 128, (1, 8)) for name in ("input_ids", "decoder_input_ids")}

    counting = CompileCounterWithBackend(backend)
    compiled = torch.compile(model, backend=counting, dynamic=False)
    with torch.no_grad():
        logits = compiled(**inputs).logits
        first_result = time.perf_counter() - START
        compiled(**inputs)
        seen = {"records": list(records), "graphs": counting.frame_count, "first_result": first_result}
        eager = model(**inputs).logits
    seen["equal_to_eager"] = torch.allclose(logits, eager, atol=1e-5, rtol=1e-5)
    seen["digest"] = hashlib.sha256(logits.numpy().tobytes()).hexdigest()
    seen["versions"] = {"torch": torch.__version__, "transformers": transformers.__version__}
    with open(out, "w", encoding="utf-8") as stream:
        json.dump(seen, stream)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Run another program and write what torch counted while it ran: counting.py OUTPUT PROGRAM."""

import json
import runpy
import sys
from pathlib import Path

output, program = sys.argv[1:3]
runpy.run_path(program, run_name="__main__")

import torch._dynamo.utils as utils  # noqa: E402

counted = {
    "compilations": len(utils.get_compilation_metrics()),
    "counters": {
        key: dict(value)
        for key, value in utils.counters.items()
        if key in ("stats", "frames", "inductor", "aot_autograd", "graph_break")
    },
}
Path(output).write_text(json.dumps(counted))

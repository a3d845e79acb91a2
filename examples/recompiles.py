"""Three calls, three compilations: a changed size, then a changed Python value.

The second call has a different size, so torch compiles again with a symbolic size. The third call passes a different
value of `scale`, which was compiled in as a constant. The recording names the guard that failed each time.

    python examples/recompiles.py
"""

import torch

import compile_inspect


@torch.compile
def scaled_sum(x, scale):
    return (x.sin() * scale).sum()


def main():
    with compile_inspect.record() as recording:
        scaled_sum(torch.ones(4), 2.0)
        scaled_sum(torch.ones(5), 2.0)
        scaled_sum(torch.ones(5), 3.0)
        scaled_sum(torch.ones(9), 3.0)  # the size is symbolic by now: nothing is compiled
    inspection = recording.inspection

    print(f"{len(inspection.compilations)} compilations of {inspection.compilations[0].function}")
    for recompile in inspection.recompiles:
        failure = recompile.latest
        print(f"{recompile.compilation}: {failure.variable} was {failure.expected}, is {failure.actual}")
        print(f"     {failure.reason}")
        print(f"     {failure.location}")
    for compilation in inspection.compilations:
        for symbol, source in compilation.dynamic_symbols.items():
            print(f"{compilation.id}: {symbol} stands for {source}")


if __name__ == "__main__":
    main()

"""What docs/explanation/common-wrong-statements.md says about CUDA devices, run on one."""

from __future__ import annotations

from collections.abc import Callable


def main() -> None:
    import torch
    from torch._dynamo.utils import counters
    from torch._inductor.utils import run_and_get_code

    def told(claim: str, shown: Callable[[], object]) -> None:
        torch.compiler.reset()
        counters.clear()
        try:
            result = shown()
        except RuntimeError as error:
            result = f"raises: {str(error).splitlines()[0]}"
        print(f"{claim}: {result}")

    def generated(function: Callable[..., object], *inputs: object) -> str:
        with torch.no_grad():
            _, (code,) = run_and_get_code(torch.compile(function), *inputs)
        return f"{code.count('extern_kernels.')} library, {code.count('.run(')} Triton"

    def entropy(features: torch.Tensor) -> torch.Tensor:
        probs = torch.softmax(features, dim=-1)
        return -(probs * torch.log(probs + 1e-8)).sum(dim=-1)

    def captured() -> str:
        compiled, batch = torch.compile(layer, mode="reduce-overhead"), torch.randn(32, 64, device="cuda")
        with torch.no_grad():
            for _ in range(3):
                compiled(batch)
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                compiled(batch)
        return "works"

    def sizes() -> str:
        compiled = torch.compile(lambda x: torch.relu(x + 1), mode="reduce-overhead")
        for size in (4, 5, 6, 7):
            for _ in range(3):
                compiled(torch.ones(size, device="cuda"))
        return f"{counters['stats']['unique_graphs']} compiled, {len(counters['graph_break'])} breaks"

    def mutated() -> str:
        def mutating(x: torch.Tensor) -> torch.Tensor:
            x += 1
            return x * 2

        compiled, batch = torch.compile(mutating, mode="reduce-overhead"), torch.ones(8, device="cuda")
        for _ in range(3):
            compiled(batch)
        return f"{counters['inductor']['cudagraph_skips']} CUDA graph skipped"

    def rebound() -> list[float]:
        batch, graph = torch.ones(2, device="cuda"), torch.cuda.CUDAGraph()
        kept = batch
        with torch.cuda.graph(graph):
            output = batch * 2
        batch = torch.full_like(kept, 5.0)
        graph.replay()
        torch.cuda.synchronize()
        return list(output.tolist())

    layer = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()).cuda()
    told("pinning a CUDA tensor", lambda: torch.ones(3, device="cuda").pin_memory())
    told(
        "copying one into a pinned buffer", lambda: torch.empty(3, pin_memory=True).copy_(torch.ones(3, device="cuda")).tolist()
    )
    told("capturing a model in mode reduce-overhead", captured)
    torch.cuda.synchronize()
    told("four sizes in mode reduce-overhead", sizes)
    told("an input changed in place in mode reduce-overhead", mutated)
    told("kernels of Linear and ReLU", lambda: generated(layer, torch.randn(32, 64, device="cuda")))
    told("kernels of the entropy", lambda: generated(entropy, torch.randn(32, 196, 768, device="cuda")))
    told("a replay of 1 * 2 after the input was rebound to 5", rebound)
    told("float32 matmul precision", torch.get_float32_matmul_precision)


if __name__ == "__main__":
    main()

"""Phase 4 of the tour: the kernels that Inductor generates, what each computes, and which pairs were not fused.

python -m compile_inspect.inductor_codegen
python -m compile_inspect.inductor_codegen --target model.py:model --inputs model.py:inputs
"""

from __future__ import annotations

from compile_inspect.tour.phases.inductor_codegen import InductorInspection, run_inductor_inspection

__all__ = ["InductorInspection", "run_inductor_inspection"]

if __name__ == "__main__":
    from compile_inspect.tour.command_line import run_lesson_command

    run_lesson_command("inductor_codegen")

"""Phase 2 of the tour: the graph that Dynamo captures, held against the lines it came from.

python -m compile_inspect.dynamo_capture
python -m compile_inspect.dynamo_capture --target model.py:model --inputs model.py:inputs
"""

from __future__ import annotations

from compile_inspect.tour.phases.dynamo_capture import DynamoExploration, run_dynamo_exploration

__all__ = ["DynamoExploration", "run_dynamo_exploration"]

if __name__ == "__main__":
    from compile_inspect.tour.command import run_chapter

    run_chapter("dynamo_capture")

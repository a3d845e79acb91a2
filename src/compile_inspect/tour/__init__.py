"""The guided tour: five phases and some chapters, each a run on this machine that answers a question.

The phases are `compile_inspect.basics`, `dynamo_capture`, `graph_breaks`, `inductor_codegen` and `benchmark`; the chapters are
in `compile_inspect.tour.chapters`. `contents` lists them all, `guide` shows them, `running` goes through them.
"""

"""The guided tour: five phases and some chapters, each a run on this machine that answers a question.

`contents` lists them, `guide` shows them, `running` goes through them. Each of the five in `phases` can be run alone:
`python -m compile_inspect.basics`, `dynamo_capture`, `graph_breaks`, `inductor_codegen` and `benchmark`.
"""

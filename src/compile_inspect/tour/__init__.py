"""The guided tour: five phases and nine topics. Each is a lesson that runs on this machine and answers a question.

`catalog` lists the lessons, `runner` runs them, and `guide` shows them. Each phase also runs alone:
`python -m compile_inspect.basics`, `dynamo_capture`, `graph_breaks`, `inductor_codegen` and `benchmark`.
"""

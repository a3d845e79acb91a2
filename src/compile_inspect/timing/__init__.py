"""How long each variant of a target takes, what its build costs, and after how many calls the build pays back.

    timing = compile_inspect.time_variants(model, x, variants=["inductor", "aot-inductor"])
    for item in timing.points[0].measurements:
        print(item.variant, item.refusal or item.summary.median, item.payback)

`sampling` takes the samples and `noise` analyzes them; `payback` predicts when a build pays back; `warm_up`, `conditions`,
`page_faults` and `memory` observe the circumstances; `sweep` creates inputs of other sizes. `cold_builds` builds in separate
processes, for which `pickling` serializes functions. `point_measurement` measures one input size, `api` all of them.
"""

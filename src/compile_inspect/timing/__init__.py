"""How long every variant of a target takes, what building it costs, and after how many calls that pays back.

    timing = compile_inspect.time_variants(model, x, variants=["inductor", "aot-inductor"])
    for item in timing.points[0].measurements:
        print(item.variant, item.refusal or item.summary.median, item.payback)

`sampling` takes the samples and `noise` says what they mean; `payback` predicts when a build pays; `warm_up`,
`conditions` and `memory` watch what happens around; `sweep` makes inputs of other sizes. `cold` builds in processes of their
own, to which `transfer` sends functions; `point` puts it together for one size, `measuring` for all.
"""

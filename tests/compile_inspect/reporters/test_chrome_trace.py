"""The trace for Perfetto."""

from __future__ import annotations

import dataclasses
import json

import samples

from compile_inspect.records import Inspection, Phase, Process
from compile_inspect.reporters.chrome_trace import chrome_trace


def test_phases_are_complete_events_in_microseconds_from_the_first() -> None:
    trace = json.loads(json.dumps(chrome_trace([samples.everything()]), allow_nan=False))
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(events) == 7
    assert events[0]["ts"] == 0.0
    assert events[2] == {
        "ph": "X",
        "name": "backend_compile",
        "cat": "torch.compile",
        "ts": 1_200_000.0,
        "dur": 1_500_000.0,
        "pid": 4242,
        "tid": 4242,
        "args": {"is_backward": False, "compilation": "0/0"},
    }


def test_processes_and_threads_are_named() -> None:
    trace = chrome_trace(samples.ranks())
    names = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
    assert names == {100: "rank 0", 101: "rank 1"}
    order = {event["pid"]: event["args"] for event in trace["traceEvents"] if event["name"] == "process_sort_index"}
    assert order == {100: {"sort_index": 0}, 101: {"sort_index": 1}}
    threads = [event for event in trace["traceEvents"] if event["name"] == "thread_name" and event["pid"] == 100]
    assert [(event["tid"], event["args"]["name"]) for event in threads] == [
        (4242, "compiling"),
        (100, "compiling, thread 2"),
    ]


def test_all_processes_are_on_one_clock() -> None:
    early = Inspection(process=Process(pid=1), phases=(Phase("0/0", "a", 10.0, 1.0),))
    late = Inspection(process=Process(pid=2), phases=(Phase("0/0", "a", 12.5, 1.0),))
    starts = [event["ts"] for event in chrome_trace([late, early])["traceEvents"] if event["ph"] == "X"]
    assert starts == [2_500_000.0, 0.0]


def test_equal_pids_of_two_machines_stay_apart() -> None:
    twice = chrome_trace([samples.everything(), samples.everything()])
    pids = {event["pid"] for event in twice["traceEvents"] if event["ph"] == "X"}
    assert pids == {4242, 4243}


def test_no_event_is_on_thread_zero() -> None:
    inspection = Inspection(process=Process(pid=0), phases=(Phase(None, "a", 0.0, 1.0),))
    (event,) = [event for event in chrome_trace([inspection])["traceEvents"] if event["ph"] == "X"]
    assert event["tid"] == 1
    assert event["args"] == {}


def test_times_that_are_no_numbers_are_left_out() -> None:
    nan = float("nan")
    phases = (Phase(None, "bad", nan, 1.0), Phase(None, "good", 3.0, 1.0, details={"ratio": nan}))
    trace = chrome_trace([dataclasses.replace(samples.empty(), phases=phases)])
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [(event["name"], event["ts"], event["args"]) for event in events] == [("good", 0.0, {"ratio": "nan"})]
    json.dumps(trace, allow_nan=False)


def test_a_capture_without_times_gives_a_valid_trace() -> None:
    trace = chrome_trace([samples.empty()])
    assert [event["name"] for event in trace["traceEvents"]] == ["process_name"]
    assert chrome_trace([])["traceEvents"] == []

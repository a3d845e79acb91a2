"""The capture file: whole, partial, damaged, foreign."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compile_inspect.capture_file import FORMAT, load, load_together, process_path, save
from compile_inspect.errors import CaptureError
from compile_inspect.journal import FileJournal
from compile_inspect.records import (
    OLDEST_READABLE_SCHEMA,
    SCHEMA_VERSION,
    Compilation,
    CompilationOutcome,
    Direction,
    Graph,
    Inspection,
    Location,
    Lowering,
    MemoryEstimate,
    Node,
    Process,
    Stack,
    Stage,
    TensorType,
)


def sample(session: str = "s", pid: int = 1, rank: int | None = None) -> Inspection:
    return Inspection(
        process=Process(pid=pid, rank=rank, session=session),
        compilations=(
            Compilation("0/0", "forward", "model.py", 3, CompilationOutcome.COMPILED, seconds=1.5, dynamic_symbols={"s0": "x"}),
        ),
        graphs=(
            Graph(
                "0/0:dynamo:0",
                "0/0",
                Stage.DYNAMO,
                Direction.FORWARD,
                (Node("a", "placeholder", "a", value=(TensorType((2, "s0"), "float32"),), stack=0),),
            ),
        ),
        lowerings=(Lowering("l", "0/0", Direction.BACKWARD, None, memory=MemoryEstimate(7, (("op0", 7),))),),
        stacks=(Stack((Location("model.py", 3, "forward", "return x"),)),),
        sources={"model.py": "a\nb\n"},
    )


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    save(sample(), tmp_path / "a.inspection")
    assert load(tmp_path / "a.inspection") == sample()
    assert load(str(tmp_path / "a.inspection")) == sample()


def test_the_file_is_a_zip_of_json_and_nothing_else(tmp_path: Path) -> None:
    save(sample(), tmp_path / "a.inspection")
    with zipfile.ZipFile(tmp_path / "a.inspection") as archive:
        assert archive.namelist() == ["manifest.json", "inspection.json"]
        manifest = json.loads(archive.read("manifest.json"))
        json.loads(archive.read("inspection.json"))
    assert (manifest["format"], manifest["schema"], manifest["complete"]) == (FORMAT, SCHEMA_VERSION, True)


def test_saving_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.inspection"
    save(sample(), path)

    def fail(self: object, name: str, data: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    with pytest.raises(CaptureError, match="could not be written: No space left"):
        save(Inspection(), path, force=True)
    assert load(path) == sample()
    assert [item.name for item in tmp_path.iterdir()] == ["a.inspection"]


def rewrite(path: Path, **members: object) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.json", content if isinstance(content, (str, bytes)) else json.dumps(content))


def manifest(**changes: object) -> dict[str, object]:
    return {"format": FORMAT, "schema": SCHEMA_VERSION, **changes}


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ({"manifest": manifest(schema=SCHEMA_VERSION + 1), "inspection": {}}, "upgrade compile-inspect"),
        ({"manifest": manifest(schema=OLDEST_READABLE_SCHEMA - 1), "inspection": {}}, "record again"),
        ({"manifest": manifest(schema="1"), "inspection": {}}, "does not specify its schema"),
        ({"manifest": manifest(format="other"), "inspection": {}}, "not a capture"),
        ({"manifest": [], "inspection": {}}, "not a capture"),
        ({"inspection": {}}, "not a capture"),
        ({"manifest": manifest()}, "not a capture"),
        ({"manifest": manifest(), "inspection": "{"}, "damaged"),
        ({"manifest": manifest(), "inspection": b"\xff\xfe\xfa"}, "damaged"),
        ({"manifest": manifest(), "inspection": []}, "cannot be read"),
        ({"manifest": manifest(), "inspection": {"graphs": [3]}}, "cannot be read"),
        ({"manifest": manifest(), "inspection": {"stacks": [{"locations": [{"file": 3, "line": 1}]}]}}, "cannot be read"),
        ({"manifest": manifest(), "inspection": "[" * 100_000}, "damaged"),
    ],
)
def test_wrong_contents_get_one_sentence(members: dict[str, object], sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "a.inspection"
    rewrite(path, **members)
    with pytest.raises(CaptureError, match=sentence) as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_other_files_get_one_sentence(tmp_path: Path) -> None:
    for name, content, sentence in [
        ("empty", b"", "is empty"),
        ("text", b"hello\n", "is not a capture"),
        ("binary", bytes(range(256)), "is not a capture"),
        ("json", b'{"format": "something"}', "is not a capture"),
        ("cut", b"PK\x03\x04 and no end", "is truncated"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CaptureError, match=sentence):
            load(tmp_path / name)
    with pytest.raises(CaptureError, match="there is no file"):
        load(tmp_path / "missing")
    with pytest.raises(CaptureError, match="is a directory"):
        load(tmp_path)


class Trap:
    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, ("sprung",)


def test_a_pickle_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.inspection").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(CaptureError):
        load("a.inspection")
    rewrite(tmp_path / "b.inspection", manifest=manifest(), inspection=pickle.dumps(Trap()))
    with pytest.raises(CaptureError):
        load("b.inspection")
    assert not (tmp_path / "sprung").exists()


def test_a_newer_field_is_ignored(tmp_path: Path) -> None:
    rewrite(tmp_path / "a.inspection", manifest=manifest(), inspection={"notes": ["n"], "from_the_future": {"x": 1}})
    assert load(tmp_path / "a.inspection").notes == ("n",)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "a.inspection"
    save(sample(), path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def journaled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("journal") / "a.inspection"
    journal = FileJournal(path, {"schema": SCHEMA_VERSION, "pid": 3})
    common = {"compilation": "0/0", "time": 1.0, "thread": 1}
    journal.append({"kind": "stack", "index": 0, "stack": [["model.py", 3, "forward", "return x"]]})
    journal.append({"kind": "start", **common, "stack": 0})
    journal.append({"kind": "graph text", **common, "event": "aot_joint_graph", "text": "def forward(self):\n    return 1"})
    journal.append({"kind": "guard tree", **common, "text": "+- RootGuardManager\n| +- DEFAULT_DEVICE: x == None"})
    journal.append({"kind": "metrics", **common, "backward": False, "metrics": {"co_name": "forward"}})
    journal.append({"kind": "recompile", **common, "reasons": ["0/0: x == 3"]})
    journal.close()
    return path.read_bytes()


def load_or_refuse(path: Path, content: bytes) -> Inspection | None:
    path.write_bytes(content)
    try:
        return load(path)
    except CaptureError as error:
        assert "\n" not in str(error)
        return None


def test_every_truncation_of_a_capture_is_refused(whole: bytes, tmp_path: Path) -> None:
    for length in range(0, len(whole), 3):
        assert load_or_refuse(tmp_path / "a", whole[:length]) is None


def test_every_truncation_of_a_journal_is_read(journaled: bytes, tmp_path: Path) -> None:
    header = journaled.index(b"\n") + 1
    for length in range(header, len(journaled) + 1):
        inspection = load_or_refuse(tmp_path / "a", journaled[:length])
        assert inspection is not None and not inspection.complete
        assert inspection.missing_evidence == ()
    assert inspection is not None and inspection.compilations[0].function == "forward"
    assert inspection.recompiles[0].failures[0].expected == "3"


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(position=st.floats(0, 1), value=st.integers(0, 255), of_journal=st.booleans())
def test_flipped_bytes_never_raise_anything_else(
    whole: bytes, journaled: bytes, tmp_path: Path, position: float, value: int, of_journal: bool
) -> None:
    content = bytearray(journaled if of_journal else whole)
    content[int(position * (len(content) - 1))] = value
    load_or_refuse(tmp_path / "a", bytes(content))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    "environment",
    "process",
    "compilations",
    "graphs",
    "breaks",
    "guards",
    "recompiles",
    "lowerings",
    "stacks",
    "sources",
]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.dictionaries(st.sampled_from(FIELDS), json_values))
def test_wrong_types_never_raise_anything_else(data: object, tmp_path: Path) -> None:
    rewrite(tmp_path / "b", manifest=manifest(), inspection=data)
    load_or_refuse(tmp_path / "a", (tmp_path / "b").read_bytes())


def test_processes_of_one_program_come_together(tmp_path: Path) -> None:
    main = tmp_path / "job.inspection"
    save(sample(session="one", pid=10), main)
    save(sample(session="one", pid=11, rank=1), process_path(main, rank=1, pid=11))
    save(sample(session="one", pid=12, rank=0), process_path(main, rank=0, pid=12))
    save(sample(session="older", pid=9), process_path(main, rank=None, pid=9))
    (tmp_path / "job.pid3.inspection").write_text("rubbish")
    loaded = load_together([main, main])
    assert [(path.name, inspection.process.pid) for path, inspection in loaded] == [
        ("job.inspection", 10),
        ("job.rank0.inspection", 12),
        ("job.rank1.inspection", 11),
    ]


def test_names_with_glob_characters(tmp_path: Path) -> None:
    main = tmp_path / "a[1]*?.inspection"
    save(sample(session="one"), main)
    save(sample(session="one", pid=2), process_path(main, rank=None, pid=2))
    assert len(load_together([main])) == 2

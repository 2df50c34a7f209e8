"""Scripts as texts: what their headers promise is what transitions send and bodies use."""

import re
from dataclasses import asdict
from importlib.resources import files
from typing import Any

import pytest

from shared.queue import admin_commands, audit, commands, queries
from shared.queue.command import Command
from shared.queue.lua_library import ScriptLibrary, ScriptName, script_parts, source
from shared.queue.model import Band, HeartbeatEntry, JobId, JobKey, JobRequest, JobState, RunResult, Scope, Share, Token
from shared.queue.settings import SETTINGS, QueueSettings

SPEC = JobRequest(JobKey("t", "{}", "compact"), "default", Band.NORMAL, 5, 1, 1)
JOB, TOKEN = SPEC.id, Token(7)
PIECES = {
    path.name.removesuffix(".lua"): path.read_text(encoding="utf-8")
    for path in files("shared.queue").joinpath("lua", "include").iterdir()
}


def ingest(**more: Any) -> Command[Any]:
    return commands.ingest("q", table="t", expected_version=-1, state_fields={"version": "0"}, partitions={}, **more)


CLAIM = commands.claim(
    "q", worker="w", nonce="n", slots=1, lease_ms=1_000, abilities=["delta/compact"], share=Share(2, 1)
)
FINISH = commands.finish(
    "q",
    worker="w",
    nonce="n",
    id=JOB,
    token=TOKEN,
    run_result=RunResult.DONE,
    cost_bytes=0,
    seen_version=1,
    counters={"a": 1},
)
SAMPLES: list[Command[Any]] = [
    commands.configure("q", {"aging_ms": 1, "slots": 2}),
    commands.enqueue("q", SPEC),
    CLAIM,
    commands.heartbeat(
        "q", worker="w", beats=[HeartbeatEntry(JOB, TOKEN), HeartbeatEntry(JobId("x"), TOKEN)], lease_ms=1_000
    ),
    FINISH,
    commands.finish_and_claim(FINISH, CLAIM),
    ingest(jobs=[SPEC], ledger=[("{}", 0)], counters={"a": 1}),
    commands.decide("q", nonce="n", table="t", job=SPEC, counters={"a": 1}),
    commands.cancel("q", JOB, nonce="n"),
    commands.forget_refusals("q", "t", ["{}"]),
    admin_commands.set_weight("q", Scope.TENANT, "a", 2),
    admin_commands.set_window("q", "t", ""),
    admin_commands.set_budget("q", Scope.TABLE, "t", ""),
    admin_commands.set_limit("q", Scope.TABLE, "t", admin_commands.SlotLimit(2)),
    admin_commands.pause("q", Scope.QUEUE),
    admin_commands.expedite("q", JOB),
    admin_commands.requeue("q", JOB),
    admin_commands.preempt("q", admin_commands.Preemption()),
    audit.jobs("q", [JOB]),
    audit.flow("q", "2|a|t", "queued", 0),
    audit.node("q", "root", "ready", 0),
    audit.index("q", JobState.QUEUED, 0),
    audit.in_flight("q"),
    audit.throttled("q", Scope.TABLE, "t"),
    queries.order("q"),
    queries.job("q", JOB),
    queries.jobs("q", JobState.QUEUED),
    queries.depth("q"),
    queries.history("q"),
]


READ_BY_PIECES = {ScriptName.CLAIM: range(3, 8), ScriptName.ENQUEUE: range(1, 17), ScriptName.FINISH: range(3, 12)}
"""Arguments of scripts that hand all of them to a piece of the library."""


def header(name: ScriptName) -> str:
    match = re.match(r"#!lua[^\n]*\n--\[\[\n(.*?)\]\]\n", source(name), re.DOTALL)
    assert match, f"{name} must begin with a shebang and its header"
    return match[1]


def body(name: ScriptName) -> str:
    return source(name).split("]]\n", 1)[1]


def test_every_script_has_a_transition() -> None:
    assert {sample.script for sample in SAMPLES} == set(ScriptName)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.script)
def test_a_header_names_the_keys_and_arguments_that_are_sent(sample: Command[Any]) -> None:
    stated = header(sample.script)
    assert stated.lstrip().startswith(f"{sample.script}: ")
    assert "Output: " in stated
    assert len(set(re.findall(r"KEYS\[(\d+)\]", stated))) == len(sample.keys) == 1
    fixed = {int(number) for number in re.findall(r"ARGV\[(\d+)\]", stated)}
    assert fixed == set(range(1, len(fixed) + 1))
    rest = re.search(r"ARGV\[(\d+)\.\.\]", stated)
    if rest is None:
        assert len(sample.args) == len(fixed)
    else:
        assert int(rest[1]) == len(fixed) + 1
        assert len(sample.args) > len(fixed)


@pytest.mark.parametrize("name", ScriptName)
def test_a_body_uses_every_argument_that_its_header_names_and_no_other(name: ScriptName) -> None:
    named = set(re.findall(r"ARGV\[(\d+)\]", header(name)))
    assert set(re.findall(r"ARGV\[(\d+)\]", body(name))) == named - set(map(str, READ_BY_PIECES.get(name, ())))


@pytest.mark.parametrize("name", ScriptName)
def test_scripts_are_bounded_and_leave_keys_to_one_file(name: ScriptName) -> None:
    text = body(name)
    assert not re.search(r"\bKEYS\b", text), "the library names the keys for every script"
    assert_bounded(text)


@pytest.mark.parametrize("piece", sorted(PIECES))
def test_pieces_are_bounded_and_leave_keys_to_one_of_them(piece: str) -> None:
    text = source(f"include/{piece}")
    assert_bounded(text)
    assert piece == "keys" or not re.search(r"\bP \.\.", text), "only keys.lua builds keys"


def assert_bounded(text: str) -> None:
    assert not re.search(r"'(KEYS|SCAN|SMEMBERS|FLUSHALL|FLUSHDB)'", text)
    code = re.sub(r"--.*", "", text)
    assert not re.search(r"\bwhile\b|\brepeat\b", code), "loops are bounded by construction: for only"


def test_a_name_means_one_thing_in_the_whole_library() -> None:
    """The pieces share one scope: a second `local` of a name would silently split those before from those after it."""
    names = re.findall(r"^local (?:function )?([\w, ]+?)(?:\(| =|$)", "\n".join(PIECES.values()), re.MULTILINE)
    each = [name for group in names for name in group.split(", ")]
    assert len(each) == len(set(each)) > 60
    assert len(each) <= 200, "Lua allows 200 local names in one scope"


def test_what_belongs_to_one_call_is_forgotten_by_the_next() -> None:
    """A piece without a value for its state at load time must set it at the beginning of every call."""
    for piece in ("tree", "repair"):
        assert re.search(r"^on_call_start\[#on_call_start \+ 1\] = function\(\)", PIECES[piece], re.MULTILINE)


def test_reads_are_declared_read_only_and_what_makes_room_may_run_out_of_memory() -> None:
    """With a shebang the server decides before the first command, so that no script fails in the middle."""
    flags = {name: source(name).splitlines()[0].removeprefix("#!lua").strip() for name in ScriptName}
    reading = {ScriptName.VIEW, ScriptName.LIST, ScriptName.DEPTH, ScriptName.HISTORY, ScriptName.ORDER}
    assert {name for name, flag in flags.items() if flag == "flags=no-writes"} == reading
    ending = {ScriptName.FINISH, ScriptName.FINISH_AND_CLAIM}
    making_room = {ScriptName.CLAIM, ScriptName.HEARTBEAT, ScriptName.CANCEL, ScriptName.PAUSE, *ending}
    assert {name for name, flag in flags.items() if flag == "flags=allow-oom"} == making_room


def test_a_piece_is_included_once_and_before_its_first_use() -> None:
    text = ScriptLibrary().text
    assert "-- include" not in text
    assert text.count("local function place(") == 1
    assert text.index("local function place(") < text.index("place(id, job")


def test_only_a_replaced_piece_changes_the_library_and_its_names() -> None:
    plain, again, tested = ScriptLibrary(), ScriptLibrary(), ScriptLibrary({"time": "local clock_us"})
    assert "'TIME'" in plain.text
    assert "'TIME'" not in tested.text
    assert plain.function(ScriptName.CLAIM) == again.function(ScriptName.CLAIM) != tested.function(ScriptName.CLAIM)
    assert plain.name != tested.name


def test_the_defaults_in_lua_are_those_of_the_model() -> None:
    block = re.search(r"local DEFAULTS = \{\n(.*?)\n\}", source("include/config"), re.DOTALL)
    assert block
    found = {name: int(value) for name, value in re.findall(r"(\w+) = (\d+),", block[1])}
    assert found == {name: setting.default for name, setting in SETTINGS.items()}
    assert asdict(QueueSettings()) == found


@pytest.mark.parametrize("name", SETTINGS)
def test_a_default_may_be_set(name: str) -> None:
    default = SETTINGS[name].default
    assert commands.configure("q", {name: default}).args == (name, default)


@pytest.mark.parametrize("text", ["return 1", "#!lua\nreturn 1", "-- a comment\n#!lua\n--[[ KEYS ]]\nreturn 1"])
def test_a_script_without_its_flags_and_header_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.queue.lua_library.source", lambda _name: text)
    with pytest.raises(ValueError, match="claim does not begin with '#!lua' and its header"):
        script_parts(ScriptName.CLAIM)

"""OpenTelemetry: spans and metrics of runs, sent to a collector of our own on loopback over OTLP/HTTP."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rooda.otel import names
from rooda.otel.sender import Collector as Address
from rooda.otel.sender import no_proxy
from rooda.otel.spans import About, Span, Tracker
from rooda.run import trace_ids
from tests.kit.kinds import KINDS
from tests.kit.loops import Loops
from tests.kit.workspace import Workspace, until

HAS_EXTRA = find_spec("opentelemetry") is not None
NEEDS_EXTRA = pytest.mark.skipif(not HAS_EXTRA and "CI_TOOLS" not in os.environ, reason="needs the extra otel")
PROMPT, ANSWER = "the-words-of-the-prompt", "the-words-of-the-answer"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
PAID = (
    '{"type":"system","subtype":"init","session_id":"s","model":"claude-opus-9"}\\n'
    '{"type":"assistant","message":{"model":"claude-opus-9","content":[{"type":"text","text":"%s"}]}}\\n'
    '{"type":"result","subtype":"success","is_error":false,"result":"%s","total_cost_usd":0.25,'
    '"usage":{"input_tokens":100,"output_tokens":50,"cache_read_input_tokens":7,"cache_creation_input_tokens":3},'
    '"modelUsage":{"claude-opus-9":{"inputTokens":100,"outputTokens":50,"cacheReadInputTokens":7,"cacheCreationInputTokens":3,"costUSD":0.25}}}\\n'
).replace("%s", ANSWER)
WORDS = {"goal": ("--yes",)}


class Got(NamedTuple):
    """A span as the collector got it."""

    name: str
    trace: str
    id: str
    parent: str
    links: list[str]
    facts: dict[str, Any]
    failed: bool
    seconds: float


class Running:
    """The collector: a process that keeps each request in a file."""

    def __init__(self, folder: Path, way: str = "well") -> None:
        self.folder = folder
        folder.mkdir()
        command = [sys.executable, "-m", "tests.kit.collector", str(folder), way]
        self.process = subprocess.Popen(command, cwd=Path(__file__).parents[2])
        until((folder / "port").exists, what="the collector's port")
        self.url = f"http://127.0.0.1:{(folder / 'port').read_text()}"

    @property
    def requests(self) -> list[tuple[dict[str, Any], bytes]]:
        """Path and headers, and body, of each request."""
        paths = sorted(self.folder.glob("*.pb"))
        return [(json.loads(path.with_suffix(".json").read_text()), path.read_bytes()) for path in paths]

    @property
    def spans(self) -> list[Got]:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        found = []
        for about, body in self.requests:
            if about["path"] == "/v1/traces":
                for whole in ExportTraceServiceRequest.FromString(body).resource_spans:
                    found += [_got(span) for scoped in whole.scope_spans for span in scoped.spans]
        return found

    @property
    def metrics(self) -> dict[str, list[Any]]:
        """The data points of the last request, by the metric's name."""
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

        body = [body for about, body in self.requests if about["path"] == "/v1/metrics"][-1]
        (whole,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
        return {
            each.name: [*each.histogram.data_points, *each.sum.data_points]
            for scoped in whole.scope_metrics
            for each in scoped.metrics
        }


def _got(span: Any) -> Got:
    return Got(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        [link.span_id.hex() for link in span.links],
        facts(span.attributes),
        span.status.code == 2,
        (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
    )


def facts(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts collectors; each ends with the test."""
    started: list[Running] = []

    def start(way: str = "well") -> Running:
        started.append(Running(tmp_path / f"collector-{len(started)}", way))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


@pytest.fixture
def paid(ws: Workspace) -> Workspace:
    """An agent that reports its usage and writes down its environment; a gate that is red in iteration 2."""
    ws.write("bin/claude", f"#!/bin/sh\ncat >/dev/null\nenv >env-$ROODA_ITERATION\nprintf '{PAID}'\n", 0o755)
    ws.write("prompt.md", PROMPT)
    gate = '[[loop.quality_gates]]\nname = "tests"\ncommand = "[ $ROODA_ITERATION != 2 ]"\n'
    ws.config(
        '[loop]\nagent = "claude"\n[agents.claude]\ncommand = "claude"\noutput = "claude"\n'
        f'[procedures.work]\nobserve = "prompt.md"\norient = "O"\ndecide = "D"\nact = "A"\n{gate}'
    )
    ws.env["PATH"] = f"{ws.path}/bin{os.pathsep}{ws.env['PATH']}"
    return ws


def environment(ws: Workspace, number: int) -> dict[str, str]:
    """What the agent of an iteration got."""
    return dict(line.split("=", 1) for line in ws.read(f"env-{number}").splitlines() if "=" in line)


@NEEDS_EXTRA
def test_P_06_spans_and_metrics_of_a_run(paid: Workspace, collector: Callable[..., Running]) -> None:
    """Run, iterations, calls and gates with their parents; tokens and cost; no prompt, no answer; keys stay here."""
    to = collector()
    given = {ENDPOINT: to.url, "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20key", "OTEL_SERVICE_NAME": "loops"}
    ran = paid.rooda("work", "-n", "2", env=given)
    assert ran.code == 1 and "elemetry" not in ran.both
    spans = {span.name: span for span in to.spans if span.name.startswith(("rooda", "iteration"))}
    root, one, two = spans["rooda work"], spans["iteration 1"], spans["iteration 2"]
    assert (root.parent, one.parent, two.parent) == ("", root.id, root.id) and len({s.trace for s in to.spans}) == 1
    assert (root.failed, one.failed, two.failed) == (True, False, True)
    assert root.facts["gen_ai.operation.name"] == "invoke_workflow" and root.facts["rooda.state"] == "failed"
    calls = [span for span in to.spans if span.name == "invoke_agent claude"]
    gates = [span for span in to.spans if span.name == "gate tests"]
    assert [call.parent for call in calls] == [gate.parent for gate in gates] == [one.id, two.id]
    expected = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "claude",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.response.model": "claude-opus-9",
        "gen_ai.usage.input_tokens": 110,
        "gen_ai.usage.output_tokens": 50,
        "gen_ai.usage.cache_read.input_tokens": 7,
        "gen_ai.usage.cache_creation.input_tokens": 3,
        "rooda.cost_dollars": 0.25,
    }
    assert calls[0].facts.items() >= expected.items()
    assert [gate.facts["rooda.gate.verdict"] for gate in gates] == ["pass", "exit 1"] and gates[1].failed
    usage = {
        facts(each.attributes)["gen_ai.token.type"]: (each.count, each.sum) for each in to.metrics[names.TOKEN_USAGE]
    }
    assert usage == {"input": (2, 220), "output": (2, 100)} and [p.as_double for p in to.metrics["rooda.cost"]] == [0.5]
    for about, body in to.requests:
        assert {name.lower(): value for name, value in about["headers"].items()}["api-key"] == "a key"
        assert PROMPT.encode() not in body and ANSWER.encode() not in body and paid.path.encode() not in body
    for number, call in enumerate(calls, 1):
        env = environment(paid, number)
        assert env["TRACEPARENT"] == f"00-{call.trace}-{call.id}-01"
        assert (env["CLAUDE_CODE_ENABLE_TELEMETRY"], env["OTEL_TRACES_EXPORTER"], env[ENDPOINT]) == (
            "1",
            "otlp",
            to.url,
        )
        assert not any("HEADERS" in name or "a%20key" in value for name, value in env.items())


@NEEDS_EXTRA
@pytest.mark.parametrize("kind", [*KINDS])
def test_P_06_every_kind_is_one_tree(ws: Workspace, kind: str, collector: Callable[..., Running]) -> None:
    """One root; every other span's parent is a span; calls of the work, and gates, are in an iteration."""
    to = collector()
    ws.env[ENDPOINT] = to.url
    assert getattr(Loops(ws), kind)(*WORDS.get(kind, ())).code == 0
    spans = to.spans
    by_id = {span.id: span for span in spans}
    assert len(by_id) == len(spans) and len({span.trace for span in spans}) == 1
    (root,) = (span for span in spans if not span.parent)
    assert root.facts["rooda.loop.kind"] == kind and root.facts["rooda.state"] == "completed" and not root.failed
    assert all(span.parent in by_id for span in spans if span is not root)
    turns = [span for span in spans if span.name.startswith("iteration ")]
    assert turns and all(span.parent == root.id for span in turns)
    calls = [span for span in spans if span.name.startswith("invoke_agent")]
    inner = [span for span in calls if by_id[span.parent] in turns]
    assert inner and (kind == "goal" or inner == calls)


def test_P_06_off_by_default(ws: Workspace) -> None:
    """No variable reaches the agent, no process is started, and nothing of it is loaded."""
    code = (
        "import sys; from rooda.startup import main\n"
        "try: main(['build', '-n', '1'])\n"
        "finally: print('LOADED', *(m for m in sys.modules if 'telemetry' in m or 'otel' in m.lower()))"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ws.path, env=ws.env, capture_output=True, text=True)
    assert ran.returncode == 0 and ran.stdout.splitlines()[-1].strip() == "LOADED"
    assert not any("TRACE" in name or "OTEL" in name for name in ws.calls[0].env)
    assert ws.rooda("build", "-n", "1", env={ENDPOINT: "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"}).code == 0
    assert "TRACEPARENT" not in ws.calls[1].env


@NEEDS_EXTRA
def test_P_06_a_resume_continues_the_trace(paid: Workspace, collector: Callable[..., Running]) -> None:
    """Its root is in the same trace, linked to the session before; a TRACEPARENT that rooda gets is the parent."""
    to = collector()
    paid.config(paid.read("rooda.toml") + f'[telemetry]\nendpoint = "{to.url}/"\n')
    assert paid.rooda("work", "-n", "9", "--max-cost", "0.2").code == 4
    assert paid.rooda("resume", "work", "--max-cost", "0.4").code == 4
    first, second = (span for span in to.spans if span.name == "rooda work")
    assert first.trace == second.trace and second.links == [first.id] and not first.links
    assert first.facts["rooda.run"] == second.facts["rooda.run"] == first.facts["rooda.session"]
    above = f"00-{'ab' * 16}-{'cd' * 8}-01"
    assert paid.rooda("work", "-n", "1", "--fresh", "--ai-cmd", "true", env={"TRACEPARENT": above}).code == 0
    third = [span for span in to.spans if span.name == "rooda work"][-1]
    assert (third.trace, third.parent) == ("ab" * 16, "cd" * 8)
    count = len(to.spans)
    ran = paid.rooda("work", "-n", "1", "--fresh", "--ai-cmd", "true", env={"TRACEPARENT": f"{above[:-1]}0"})
    assert ran.code == 0 and len(to.spans) == count  # not sampled


@NEEDS_EXTRA
def test_P_06_a_killed_loop_loses_nothing_that_had_ended(ws: Workspace, collector: Callable[..., Running]) -> None:
    """The guardian sees the loop die; the exporter sends what it has, the open spans as cut off, and ends."""
    to = collector()
    ws.side(2, 'touch "$FAKE/here"; sleep 60')
    ws.start("build", "-n", "3", env={ENDPOINT: to.url})
    until(lambda: os.path.exists(f"{ws.fake}/here") and bool(to.spans), what="the second call, and spans of the first")
    os.kill(ws.calls[1].ppid, signal.SIGKILL)
    until(lambda: any(span.name == "rooda build" for span in to.spans), what="the root")
    until(lambda: not ws.leftovers(), what="every process to be gone")
    spans = to.spans
    assert [span.facts.get("rooda.cut_off") for span in spans if span.name in ("iteration 1", "iteration 2")] == [
        None,
        True,
    ]
    (cut,) = (span for span in spans if span.facts.get("error.type") == "cut_off")
    assert cut.facts["rooda.call"] == "iteration" and cut.failed


@NEEDS_EXTRA
def test_P_06_an_agent_that_kills_the_exporter(ws: Workspace, collector: Callable[..., Running]) -> None:
    """The run goes on; one warning says that telemetry is incomplete."""
    to = collector()
    ws.side(1, "kill -9 $(pgrep -P $PPID -f rooda.otel)")
    ran = ws.rooda("build", "-n", "2", env={ENDPOINT: to.url})
    assert ran.code == 0 and ran.both.count("elemetry") == 1 and "its process was killed" in ran.both


@NEEDS_EXTRA
@pytest.mark.parametrize("way", ["hangs", "resets", "500", "redirects", "gibberish", "deaf", "nobody", "certificate"])
def test_P_06_a_bad_collector_costs_a_warning(ws: Workspace, way: str, collector: Callable[..., Running]) -> None:
    """The run is as it would be without it; one warning says what was not sent; a redirect is not followed."""
    urls = {"nobody": "http://127.0.0.1:9", "certificate": "https://127.0.0.1:9"}
    url = urls.get(way) or (to := collector(way)).url
    given = {ENDPOINT: url.replace("//", "//me:pass-word@"), "OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere"}
    ran = ws.rooda("build", "-n", "2", env=given)
    assert ran.code == 0 and ran.both.count("elemetry") == 1 and "is incomplete" in ran.both
    assert "pass-word" not in ran.both and url in ran.both
    assert not any("pass-word" in value for call in ws.calls for value in call.env.values())
    assert way != "gibberish" or "its answer is not HTTP" in ran.both
    assert way != "certificate" or "No such file or directory" in ran.both
    if way == "redirects":
        assert {about["path"] for about, _ in to.requests} <= {"/v1/traces", "/v1/metrics"}


def test_P_06_without_the_extra(ws: Workspace) -> None:
    """One warning, which says what to install; the loop runs, and its agent has no part in any trace."""
    shadow = Path(ws.root, "shadow", "opentelemetry")
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").write_text("raise RuntimeError('never imported')\n")
    ran = ws.rooda("build", "-n", "2", env={ENDPOINT: "http://127.0.0.1:9", "PYTHONPATH": str(shadow.parent)})
    assert ran.code == 0 and ran.both.count("elemetry") == 1 and "pip install 'rooda[otel]'" in ran.both
    assert "TRACEPARENT" not in ws.calls[0].env
    for wrong in ("localhost:4317", 'http://x/"'):
        ran = ws.rooda("build", "-n", "1", env={ENDPOINT: wrong})
        assert ran.code == 0 and ran.both.count("must be an http or https address") == 1


def test_P_06_the_endpoint_of_somebody_else_needs_trust(bare: Workspace) -> None:
    """A cloned repository can't send what runs do here to an address of its own."""
    theirs = os.path.join(bare.root, "theirs")
    Path(theirs).mkdir()
    Path(theirs, "rooda.toml").write_text('[loop]\nai_cmd = "true"\n[telemetry]\nendpoint = "http://127.0.0.1:9"\n')
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "theirs"]):
        subprocess.run(["git", *words], cwd=theirs, env=bare.env, check=True)
    os.rmdir(bare.path)
    subprocess.run(["git", "clone", "-q", theirs, bare.path], env=bare.env, check=True)
    ran = bare.rooda("build", "-n", "1")
    assert ran.code == 3 and "http://127.0.0.1:9" in ran.both and "telemetry endpoint" in ran.both
    bare.config('[telemetry]\nendpoint = "somewhere"\n')
    ran = bare.rooda("build", "-n", "1")
    assert ran.code == 2 and "telemetry.endpoint: must be an http or https address" in ran.err


@NEEDS_EXTRA
def test_P_06_switches_of_the_clis(ws: Workspace, collector: Callable[..., Running]) -> None:
    """codex gets an option, gemini variables; what the user set stays, and prompts are never switched on."""
    to = collector()
    for name in ("codex", "gemini"):
        script = f'#!/bin/sh\ncat >/dev/null\nenv >{name}.env\nfor word; do echo "$word"; done >{name}.argv\n'
        ws.write(f"bin/{name}", script, 0o755)
        ws.env["PATH"] = f"{ws.path}/bin{os.pathsep}{os.environ['PATH']}"
        ws.config(f'[loop]\nagent = "{name}"\nretry_wait = 0\n')
        ws.rooda("build", "-n", "1", env={ENDPOINT: to.url, "GEMINI_TELEMETRY_TARGET": "gcp"})
    assert ws.read("codex.argv").splitlines()[-2:] == [
        "-c",
        f'otel.trace_exporter={{otlp-http={{endpoint="{to.url}/v1/traces",protocol="binary"}}}}',
    ]
    env = ws.read("gemini.env").splitlines()
    assert f"GEMINI_TELEMETRY_OTLP_ENDPOINT={to.url}" in env and "GEMINI_TELEMETRY_LOG_PROMPTS=false" in env
    assert "GEMINI_TELEMETRY_TARGET=gcp" in env and any(line.startswith("TRACEPARENT=00-") for line in env)
    assert not any("otel" in word for word in ws.read("gemini.argv").splitlines())


def about(**more: str) -> About:
    base = {
        "workspace": "w",
        "place": "/w",
        "session": "s",
        "begun": "s",
        "before": "",
        "kind": "ooda",
        "name": "build",
    }
    return About(**{**base, "trace": "ab" * 16, "parent": "", **more})


def test_P_06_spans_of_strange_events() -> None:
    """Clocks that go back, calls without a start, iterations begun twice: no span ends before it began."""
    tracker = Tracker(about())
    records: list[dict[str, Any]] = [
        {"event": "run.started", "ts": "2026-01-01T00:00:10.000Z"},
        {"event": "iteration.started", "ts": "2026-01-01T00:00:11.000Z", "number": 1},
        {"event": "iteration.started", "ts": "2026-01-01T00:00:12.000Z", "number": 1},
        {"event": "agent.started", "ts": "nonsense", "transcript": "a.out"},
        {"event": "agent.ended", "ts": "2026-01-01T00:00:01.000Z", "transcript": "a.out", "outcome": "success"},
        {"event": "agent.ended", "ts": "2026-01-01T00:00:13.000Z", "transcript": "never-started.out"},
        {"event": "gate.ended", "ts": "2026-01-01T00:00:14.000Z", "gate": "g", "verdict": "pass", "elapsed": 99},
        {"event": "agent.started", "ts": "2026-01-01T00:00:14.000Z", "transcript": "b.out"},
        {"event": "run.ended", "ts": "2026-01-01T00:00:15.000Z", "ends": True, "state": "completed"},
    ]
    spans: list[Span] = [span for record in records for span in tracker.take(record)]
    assert [span.name for span in spans] == [
        "invoke_agent command",
        "gate g",
        "iteration 1",
        "invoke_agent command",
        "rooda build",
    ]
    assert all(span.ended >= span.began for span in spans) and not [*tracker.finish(1, cut=True)]


def test_P_06_ids_and_addresses() -> None:
    """IDs have the form of W3C; an invalid parent is none; OpenTelemetry's variables name addresses and headers."""
    trace, span = trace_ids.trace_id("/w", "run"), trace_ids.span_id("/w", "run", "0001-iteration.out")
    assert trace_ids.parent_of(trace_ids.traceparent(trace, span)) == trace_ids.Parent(trace, span, "01")
    zero = "0" * 16
    for wrong in (
        "",
        "x",
        f"00-{zero * 2}-{span}-01",
        f"00-{trace}-{zero}-01",
        f"ff-{trace}-{span}-01",
        f"00-{trace}-{span}",
    ):
        assert trace_ids.parent_of(wrong) is None
    address = Address("traces", "http://me:a%20b@host:1/base/", {})
    assert (address.url, address._user) == ("http://host:1/base/v1/traces", {"Authorization": "Basic bWU6YSBi"})
    own = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://other/x", "OTEL_EXPORTER_OTLP_HEADERS": "a=1,b=2%2C3,,c"}
    assert Address("traces", "http://host", own).url == "https://other/x"
    assert Address("traces", "http://host", own)._headers == {"a": "1", "b": "2,3"}
    assert Address("metrics", "http://host", own).url == "http://host/v1/metrics"
    for text, seconds in (("250", 0.25), ("0", 10), ("-1", 10), ("nan", 10), ("1e999", 10), ("soon", 10), ("", 10)):
        assert Address("traces", "http://host", {"OTEL_EXPORTER_OTLP_TIMEOUT": text})._timeout == seconds
    here = ("http://localhost:1/x", "http://127.0.0.1:4318", "http://[::1]:4318")
    assert all(map(no_proxy, here)) and not any(map(no_proxy, ("http://127.example.org", "http://host", "http://x")))


def test_P_06_lines_that_a_helper_does_not_read(ws: Workspace) -> None:
    """A helper that reads nothing costs a bounded amount of memory and of time, and is gone afterwards."""
    code = (
        "from rooda.base import clock; from rooda.processes.feed import MOST, Feed\n"
        "import os\n"
        "feed = Feed(['sleep', '60'], '.', dict(os.environ))\n"
        "for _ in range(MOST + 500): feed.send(b'x' * 1000)\n"
        "feed.send(b'x' * 5000)\n"
        "assert 300 < feed.dropped < 510, feed.dropped\n"
        "assert feed.finish(0.1) == ('late', '')\n"
        "feed = Feed(['cat'], '.', dict(os.environ)); feed.send(b'said')\n"
        "assert feed.finish(20) == ('ended', 'said')\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ws.path, env=ws.env, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, ""), shlex.quote(ran.stderr)

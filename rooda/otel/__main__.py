"""The program that exports a session: reads its events from stdin, and sends spans and metrics until the input ends.

It is a separate process, so that the loop never waits for a collector and never loads the export libraries.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterable
from typing import Any

from rooda.otel import names, sender
from rooda.otel.encode import Encoder
from rooda.otel.measures import Measures
from rooda.otel.sender import Collector, Sender
from rooda.otel.spans import About, Tracker

LAST = 0.7  # seconds after the end of the input within which everything must be sent
METRICS_EVERY = 60.0  # seconds


class Exporter:
    """Sends the spans and metrics of one session."""

    def __init__(self, about: About) -> None:
        environ = os.environ
        given = {"service.instance.id": about.session, "service.version": about.version, **sender.resource(environ)}
        service = environ.get("OTEL_SERVICE_NAME") or given.get("service.name") or names.SERVICE
        self._encoder = Encoder({**given, "service.name": service}, about.version, sender.now())
        self._tracker, self._measures = Tracker(about), Measures()
        self._sampled = bool(int(about.flags, 16) & 1)
        self._calls: dict[str, dict[str, Any]] = {}
        self._collector = Collector("metrics", about.endpoint, environ)
        self.spans = Sender(Collector("traces", about.endpoint, environ), self._encoder.spans)
        self._lock = threading.Lock()  # of the measures
        self.problem = ""

    def take(self, record: dict[str, Any]) -> None:
        if self._sampled and _wanted("TRACES"):
            for span in self._tracker.take(record):
                self.spans.add(span)
        key = str(record.get("transcript"))
        if record.get("event") == "agent.started":
            self._calls[key] = record
        elif record.get("event") == "agent.ended":
            with self._lock:
                self._measures.add({**self._calls.pop(key, {}), **record})

    def finish(self, cut: bool) -> None:
        """End and send the spans that are open. `cut`: the loop was killed."""
        if self._sampled and _wanted("TRACES"):
            for span in self._tracker.finish(sender.now(), cut):
                self.spans.add(span)

    def send_metrics(self) -> None:
        if not _wanted("METRICS") or not self._measures.spreads:
            return
        try:
            with self._lock:
                data = self._encoder.metrics(self._measures, sender.now())
            self._collector.post(data)
        except (OSError, ValueError) as problem:
            self.problem = str(problem)


def _wanted(signal: str) -> bool:
    return os.environ.get(f"OTEL_{signal}_EXPORTER", "otlp").strip() != "none"


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # this process ends when the loop ends, not because of a signal
    lines = iter(sys.stdin.buffer.readline, b"")
    about = About(**json.loads(next(lines)))
    try:
        exporter = Exporter(about)
    except (OSError, ValueError) as problem:  # an unreadable certificate, or an invalid address
        os.write(1, str(problem).encode())
        return
    exporter.spans.start()
    closing = threading.Event()
    metrics = threading.Thread(target=_metrics, args=(exporter, closing), daemon=True)
    metrics.start()
    _follow(exporter, lines)
    closing.set()
    exporter.spans.finish()
    deadline = sender.now() + int(LAST * 1e9)
    for thread in (exporter.spans, metrics):
        thread.join(max((deadline - sender.now()) / 1e9, 0.0))
    _report(exporter)
    sender.leave()


def _metrics(exporter: Exporter, closing: threading.Event) -> None:
    """Send the metrics every minute and at the end."""
    while not closing.wait(METRICS_EVERY):
        exporter.send_metrics()
    exporter.send_metrics()


def _follow(exporter: Exporter, lines: Iterable[bytes]) -> None:
    """Export the events. Input that ends without `closed` means that the loop was killed."""
    for line in lines:
        try:
            record = json.loads(line)
            if record.get("event") == "closed":
                exporter.finish(cut=False)
                return
            exporter.take(record)
        except (ValueError, TypeError, KeyError, AttributeError):
            continue
    exporter.finish(cut=True)


def _report(exporter: Exporter) -> None:
    """Print why spans or metrics could not be sent, and the number of lost spans; print nothing if all were sent."""
    lost = exporter.spans.taken - exporter.spans.sent
    why = exporter.spans.problem or exporter.problem or "the collector did not answer in time"
    said = f"{lost} of {exporter.spans.taken} spans were not sent: {why}" if lost else ""
    said = said or (f"the metrics were not sent: {why}" if exporter.problem else "")
    os.write(1, said.encode())


if __name__ == "__main__":
    main()

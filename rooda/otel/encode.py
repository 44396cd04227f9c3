"""Encodes spans and metrics as OTLP requests. The only module that loads the libraries of the extra `otel`."""

from collections.abc import Iterable, Mapping
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2 as metrics
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2 as trace

from rooda.otel import names
from rooda.otel.measures import BOUNDS, UNITS, Measures
from rooda.otel.spans import Span

MOST_TEXT = 256  # characters of an attribute


class Encoder:
    """Encodes the spans and metrics that one process sends."""

    def __init__(self, resource: Mapping[str, str], version: str, began: int) -> None:
        self._resource = Resource(attributes=_pairs(resource))
        self._scope = InstrumentationScope(name=names.SCOPE, version=version)
        self._began = began

    def spans(self, spans: Iterable[Span]) -> bytes:
        scoped = trace.ScopeSpans(scope=self._scope, spans=map(_span, spans))
        whole = trace.ResourceSpans(resource=self._resource, scope_spans=[scoped])
        return bytes(ExportTraceServiceRequest(resource_spans=[whole]).SerializeToString())

    def metrics(self, found: Measures, now: int) -> bytes:
        scoped = metrics.ScopeMetrics(scope=self._scope, metrics=[*self._spreads(found, now), *self._costs(found, now)])
        whole = metrics.ResourceMetrics(resource=self._resource, scope_metrics=[scoped])
        return bytes(ExportMetricsServiceRequest(resource_metrics=[whole]).SerializeToString())

    def _spreads(self, found: Measures, now: int) -> Iterable[Any]:
        for name, bounds in BOUNDS.items():
            points = [
                metrics.HistogramDataPoint(
                    attributes=_pairs(dict(key)),
                    start_time_unix_nano=self._began,
                    time_unix_nano=now,
                    count=each.number,
                    sum=each.sum,
                    bucket_counts=each.buckets,
                    explicit_bounds=bounds,
                )
                for (of, key), each in found.spreads.items()
                if of == name
            ]
            if points:
                data = metrics.Histogram(data_points=points, aggregation_temporality=_CUMULATIVE)
                yield metrics.Metric(name=name, unit=UNITS[name], histogram=data)

    def _costs(self, found: Measures, now: int) -> Iterable[Any]:
        points = [
            metrics.NumberDataPoint(
                attributes=_pairs(dict(key)),
                start_time_unix_nano=self._began,
                time_unix_nano=now,
                as_double=cost,
            )
            for key, cost in found.costs.items()
        ]
        if points:
            data = metrics.Sum(data_points=points, aggregation_temporality=_CUMULATIVE, is_monotonic=True)
            yield metrics.Metric(name=names.COST_TOTAL, unit=UNITS[names.COST_TOTAL], sum=data)


_CUMULATIVE = metrics.AGGREGATION_TEMPORALITY_CUMULATIVE


def _span(span: Span) -> Any:
    links = [trace.Span.Link(trace_id=_id(span.trace), span_id=_id(span.link))] if span.link else []
    code = trace.Status.STATUS_CODE_ERROR if span.error else trace.Status.STATUS_CODE_UNSET
    return trace.Span(
        trace_id=_id(span.trace),
        span_id=_id(span.id),
        parent_span_id=_id(span.parent),
        name=span.name[:MOST_TEXT],
        kind=trace.Span.SPAN_KIND_CLIENT if span.is_client else trace.Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=span.began,
        end_time_unix_nano=span.ended,
        attributes=_pairs(span.attributes),
        status=trace.Status(code=code),
        links=links,
    )


def _id(text: str) -> bytes:
    return bytes.fromhex(text)


def _pairs(attributes: Mapping[str, Any]) -> list[Any]:
    return [KeyValue(key=key, value=_value(value)) for key, value in attributes.items()]


def _value(value: Any) -> Any:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(string_value=str(value)[:MOST_TEXT].encode("utf-8", "replace").decode())

"""Live scores as events at an OTLP endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)

from baton.export.sink import NotDelivered
from baton.server.score_export import send_results
from baton.server.store import Store
from baton.testing import llm_server

from .seeding import add_conversation, add_score
from .serving import on_loopback
from .test_judging import INSIDE, NOW, Server, rules_for
from .test_rule_scoring import conversation as conversation_of


class Endpoint:
    """An OTLP endpoint on loopback that takes logs, or answers with a status."""

    def __init__(self) -> None:
        self.status = 200
        self.events: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.traces: list[str] = []


@contextmanager
def listening(endpoint: Endpoint) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if endpoint.status == 200:
                endpoint.headers.append(dict(self.headers))
                request = ExportLogsServiceRequest.FromString(body)
                for group in request.resource_logs:
                    for scope in group.scope_logs:
                        for record in scope.log_records:
                            endpoint.traces.append(record.trace_id.hex())
                            endpoint.events.append(
                                {each.key: each.value.string_value for each in record.attributes}
                            )
            self.send_response(endpoint.status)
            self.end_headers()
            self.wfile.write(ExportLogsServiceResponse().SerializeToString())

        def log_message(self, *_: object) -> None:
            pass

    with on_loopback(Handler) as url:
        yield url


def test_each_score_is_sent_once_also_after_an_endpoint_was_down(store: Store) -> None:
    endpoint = Endpoint()
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    with listening(endpoint) as url, llm_server(INSIDE) as llm:
        server = Server(store, rules_for(llm))
        server.arrives("before")
        server.judges(NOW)
        assert send_results(store, url, {}, NOW) == 0
        server.arrives(trace_id)
        server.judges(NOW + 1)
        endpoint.status = 503
        with pytest.raises(NotDelivered):
            send_results(store, url, {"x-key": "1"}, NOW + 2)
        endpoint.status = 200
        assert send_results(store, url, {"x-key": "1"}, NOW + 3) == 2
        assert send_results(store, url, {"x-key": "1"}, NOW + 4) == 0
    assert endpoint.traces == [trace_id] * 2
    assert endpoint.headers[0]["x-key"] == "1"
    for event in endpoint.events:
        assert event["gen_ai.evaluation.name"] == "ScopeFidelity"
        assert event["gen_ai.evaluation.score.label"] == "pass"
        assert event["gen_ai.conversation.id"] == trace_id
        assert event["baton.rule"] == "r"


def test_scores_of_a_rescore_are_not_sent(store: Store) -> None:
    endpoint = Endpoint()
    with listening(endpoint) as url:
        id_ = add_conversation(store, conversation_of())
        add_score(store, id_)
        assert send_results(store, url, {}, NOW) == 0
        add_score(store, id_, rescore=1)
        assert send_results(store, url, {}, NOW) == 0
        add_score(store, id_)
        assert send_results(store, url, {}, NOW) == 1
    assert len(endpoint.events) == 1

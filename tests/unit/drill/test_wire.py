"""Which headers and lengths pass the fault proxy."""

from __future__ import annotations

import h11

from drill.wire import Message, forwarded_request, forwarded_response


def request(method: str, headers: dict[str, str], body: bytes = b"") -> Message:
    return Message(h11.Request(method=method, target="/x", headers=list({"Host": "provider", **headers}.items())), body)


def response(status: int, headers: dict[str, str], body: bytes = b"") -> Message:
    return Message(h11.Response(status_code=status, headers=list(headers.items())), body)


def headers_of(message: Message) -> dict[bytes, bytes]:
    return dict(iter(message.head.headers))


def test_passes_what_belongs_to_the_message_and_not_what_belongs_to_the_connection() -> None:
    sent = {"Idempotency-Key": "k", "Connection": "keep-alive", "TE": "trailers", "Expect": "100-continue"}
    assert headers_of(forwarded_request(request("GET", sent))) == {b"host": b"provider", b"idempotency-key": b"k"}


def test_counts_a_chunked_body_anew() -> None:
    passed = headers_of(forwarded_request(request("POST", {"Transfer-Encoding": "chunked"}, b"four")))
    assert passed[b"content-length"] == b"4"
    assert b"transfer-encoding" not in passed


def test_says_that_a_post_is_empty_only_if_the_caller_said_so() -> None:
    assert headers_of(forwarded_request(request("POST", {"Content-Length": "0"})))[b"content-length"] == b"0"
    assert b"content-length" not in headers_of(forwarded_request(request("GET", {})))


def test_keeps_the_length_that_an_answer_to_head_announces() -> None:
    passed = forwarded_response(response(200, {"Content-Length": "10"}), b"HEAD")
    assert headers_of(passed)[b"content-length"] == b"10"


def test_gives_an_answer_without_body_no_length() -> None:
    assert b"content-length" not in headers_of(forwarded_response(response(204, {}), b"GET"))
    assert headers_of(forwarded_response(response(200, {}, b""), b"GET"))[b"content-length"] == b"0"

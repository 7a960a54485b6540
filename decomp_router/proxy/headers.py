"""Which headers travel on, and which belong to one connection only."""

from __future__ import annotations

from collections.abc import Iterable

from decomp_router.execute.upstream import Headers

_HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade".split()
)
_OF_THE_FIRST_HOP = frozenset((b"host", b"expect"))
_OF_THE_BODY = frozenset((b"content-length", b"content-type", b"content-encoding", b"accept", b"accept-encoding"))

_Pairs = Iterable[tuple[bytes, bytes]]


def end_to_end(headers: _Pairs) -> Headers:
    """Without those that hold for one connection, listed by HTTP or named in `Connection`."""
    pairs = list(headers)
    named = b",".join(value for name, value in pairs if name.lower() == b"connection").lower()
    dropped = _HOP_BY_HOP | {name.strip() for name in named.split(b",")}
    return tuple((name, value) for name, value in pairs if name.lower() not in dropped)


def onward(headers: _Pairs) -> Headers:
    """A client's headers for the upstream: its own host name, and no handshake that has been made already."""
    return tuple((name, value) for name, value in end_to_end(headers) if name.lower() not in _OF_THE_FIRST_HOP)


def for_new_body(headers: _Pairs) -> Headers:
    """A client's headers (key and the like) for a request with a JSON body of our own, to be answered unencoded."""
    kept = tuple((name, value) for name, value in onward(headers) if name.lower() not in _OF_THE_BODY)
    return (*kept, (b"content-type", b"application/json"))

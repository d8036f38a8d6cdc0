"""Who may ask the page's server, and what a browser may do with its answers.

The server listens on loopback, so whatever a browser on this machine shows could try to reach it:
a foreign page by a request of its own (Origin), or by a name that it points at 127.0.0.1 (Host,
DNS rebinding). Both are refused. What acts needs a token in a header, which no foreign page can
know or have sent along. Other users of the machine can reach the port too: where they must not
read, reading needs the token as well, from the header or from a cookie that no script can see.
"""

import hmac
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie

LOOPBACK = "127.0.0.1"

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


def own_hosts(port: int) -> frozenset[str]:
    """What a browser on this machine calls us in its Host header."""
    return frozenset({f"{name}:{port}" for name in (LOOPBACK, "localhost")})


def refusal(headers: Mapping[str, str], port: int) -> str | None:
    """Why a request is not answered; None when it may be.

    >>> refusal({"Host": "127.0.0.1:8686"}, 8686) is None
    True
    >>> refusal({"Host": "evil.example:8686"}, 8686)
    'the Host header does not name this server.'
    """
    hosts = own_hosts(port)
    if headers.get("Host", "").lower() not in hosts:
        return "the Host header does not name this server."
    origin = headers.get("Origin")
    if origin is not None and origin.lower() not in {f"http://{host}" for host in hosts}:
        return "the request comes from another site."
    return None


def cookie_name(port: int) -> str:
    """Cookies know no ports, so the name must."""
    return f"penstock-{port}"


def reading_cookie(port: int, token: str) -> str:
    """The header that lets a browser read from now on; it never lets anyone act."""
    return f"{cookie_name(port)}={token}; HttpOnly; SameSite=Strict; Path=/"


def may_read(headers: Mapping[str, str], token: str, port: int) -> bool:
    """Whether a request carries the token in either way."""
    try:
        cookies = SimpleCookie(headers.get("Cookie", ""))
    except CookieError:
        cookies = SimpleCookie()
    given = cookies.get(cookie_name(port))
    known = given is not None and hmac.compare_digest(given.value.encode(), token.encode())
    return known or may_act(headers, token)


def may_act(headers: Mapping[str, str], token: str | None) -> bool:
    """Whether a request carries the token; nobody may act where there is none."""
    if not token:
        return False
    kind, _, given = headers.get("Authorization", "").partition(" ")
    same = hmac.compare_digest(given.strip().encode(), token.encode())
    return kind == "Bearer" and same

"""What is secret in a setting or an address, and how an address is shown or written down.

Every sentence, log and document that names an address takes it from here; so does every check that
keeps a secret out of what is written beside a checkpoint.
"""

import re
from urllib.parse import unquote_plus

MASK = "***"
# Endings, since `...token.endpoint.url` and `ssl.certificate.pem` hold nothing secret.
_SECRET_NAME = re.compile(
    r"(password|passwd|pwd|passphrase|passcode|secret|token|credentials?|(api|access|account|auth"
    r"|encryption|master|private|secret|shared|signing|storage)[._-]?key|signature|sig"
    r"|(?<![a-z])(pass|sas|jwt)|connection[._-]?string|key[._-]pem|jaas[._-]config"
    r"|oauthbearer[._-]config|odbc_connect|dsn)$",
    re.IGNORECASE,
)
# Of a query, a fragment, or behind a semicolon, as some systems have them.
_PARAMETER = re.compile(r"(?<=[?&#;])(?P<name>[^=&#;]*)=[^&#;]*")
# Settings as Spark shows them, by its own kind of pattern, which may be anywhere in a name.
SPARK_REDACTION = (
    "(?i)secret|password|passphrase|token|(access|account|api|private|shared|storage)[._-]?key"
    "|[.]sas[.]|connection[._-]?string|key[.]pem|credential|dsn|sasl"
)


def is_secret_name(name: str) -> bool:
    """Whether a setting or a parameter with this name holds a secret.

    >>> [is_secret_name(name) for name in ("sasl.password", "ssl.key.pem", "ssl.ca.pem")]
    [True, True, False]
    """
    return _SECRET_NAME.search(name) is not None


def masked_url(url: str) -> str:
    """An address without user and password, and with secret parameters masked.

    Errs on the side of showing less: all up to the last @ may be part of a password.

    >>> masked_url("postgresql://user:pass/word@host/name?sslpassword=x")
    'postgresql://***@host/name?sslpassword=***'
    """
    head, who, where = _parts(url)
    shown = _PARAMETER.sub(_masked_parameter, where.partition("#")[0] if "?" in where else where)
    return head + (f"{MASK}@" if who else "") + shown


def address_of(url: str) -> str:
    """What stays the same when only user and password change."""
    head, _, where = _parts(masked_url(url))
    return head + where


def carries_secret(url: str) -> bool:
    """Whether an address has a password in front of the host, or a secret among its parameters."""
    _, who, where = _parts(url)
    names = (found["name"] for found in _PARAMETER.finditer(where))
    return ":" in who or any(is_secret_name(unquote_plus(name)) for name in names)


def _parts(url: str) -> tuple[str, str, str]:
    """What comes before the user, who it is, and the rest."""
    scheme, slashes, rest = url.partition("//")
    if not slashes:
        scheme, rest = "", url
    who, at, where = rest.rpartition("@")
    if not at or not (slashes or ":" in who):  # a file may have an @ in its name
        return scheme + slashes, "", rest
    return scheme + slashes, who or MASK, where


def _masked_parameter(found: re.Match[str]) -> str:
    name = found["name"]
    return f"{name}={MASK}" if is_secret_name(unquote_plus(name)) else found[0]

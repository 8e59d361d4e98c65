"""Read a web-config file: TLS, client certificates, passwords and headers, in the Prometheus exporter toolkit's format.

Source: prometheus/exporter-toolkit, docs/web-configuration.md. What of it can't be done here is refused by name, for a
file whose demands are dropped in silence protects less than it says.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from sluicegate.errors import SettingsError
from sluicegate.section import Section
from sluicegate.yaml_text import parsed

_GUIDE = "docs/guides/exporter.md shows a whole file."
_BCRYPT = re.compile(r"\$2[aby]\$(0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}")
# Parts of the format that are not taken here, and why.
_NOT_TAKEN = {
    "tls_server_config.cert": "name a file with cert_file: a file can be replaced while the service runs",
    "tls_server_config.key": "name a file with key_file: a file can be replaced while the service runs",
    "tls_server_config.client_ca": "name a file with client_ca_file: a file can be replaced while the service runs",
    "tls_server_config.client_allowed_sans": "issue clients' certificates from an authority of their own",
    "tls_server_config.cipher_suites": "the system's OpenSSL policy decides; min_version can be raised",
    "tls_server_config.prefer_server_cipher_suites": "the system's OpenSSL policy decides",
    "tls_server_config.curve_preferences": "the system's OpenSSL policy decides",
    "rate_limit": "overlapping scrapes share one read already",
}


class ClientAuth(StrEnum):
    """Name how a client certificate is asked for; the two of the format that ask and don't verify are left out."""

    NONE = "NoClientCert"
    IF_GIVEN = "VerifyClientCertIfGiven"
    REQUIRED = "RequireAndVerifyClientCert"


class TlsVersion(StrEnum):
    """Name the protocol versions as the format spells them."""

    TLS10 = "TLS10"
    TLS11 = "TLS11"
    TLS12 = "TLS12"
    TLS13 = "TLS13"


_VERIFY = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.IF_GIVEN: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}
_VERSIONS = {
    TlsVersion.TLS10: ssl.TLSVersion.TLSv1,
    TlsVersion.TLS11: ssl.TLSVersion.TLSv1_1,
    TlsVersion.TLS12: ssl.TLSVersion.TLSv1_2,
    TlsVersion.TLS13: ssl.TLSVersion.TLSv1_3,
}


class _TlsServer(Section):
    cert_file: Path
    key_file: Path
    client_auth_type: ClientAuth = ClientAuth.NONE
    client_ca_file: Path | None = None
    min_version: TlsVersion = TlsVersion.TLS12
    max_version: TlsVersion = TlsVersion.TLS13


class _Headers(Section):
    content_security_policy: str = Field(default="", alias="Content-Security-Policy")
    x_frame_options: str = Field(default="", alias="X-Frame-Options")
    x_content_type_options: str = Field(default="", alias="X-Content-Type-Options")
    x_xss_protection: str = Field(default="", alias="X-XSS-Protection")
    strict_transport_security: str = Field(default="", alias="Strict-Transport-Security")


class _HttpServer(Section):
    # Only HTTP/1.1 is spoken; whoever asks for HTTP/2 negotiates and gets that.
    http2: bool = True
    headers: _Headers = _Headers()


class _File(Section):
    tls_server_config: _TlsServer | None = None
    http_server_config: _HttpServer = _HttpServer()
    basic_auth_users: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tls:
    """Hold what a handshake needs; every path is absolute or relative to the working directory, as it can be opened."""

    cert_file: Path
    key_file: Path
    client_auth: ClientAuth
    client_ca_file: Path | None
    min_version: TlsVersion
    max_version: TlsVersion

    @property
    def files(self) -> tuple[Path, ...]:
        """Give the files whose change means another handshake."""
        own = (self.cert_file, self.key_file)
        return own if self.client_ca_file is None else (*own, self.client_ca_file)


@dataclass(frozen=True, slots=True)
class WebConfig:
    """Hold one web configuration: `users` is name → bcrypt hash; without `tls` the port speaks plain HTTP."""

    tls: Tls | None
    users: Mapping[str, bytes]
    headers: tuple[tuple[str, str], ...]


OPEN = WebConfig(None, {}, ())


def read(path: Path) -> WebConfig:
    """Read and check a web-config file; raises SettingsError, which repeats no value of it."""
    try:
        body = parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"The web configuration {path} cannot be read: {error.strerror}.", _GUIDE) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsError(f"The web configuration {path} is not valid YAML.", _GUIDE) from error
    if not isinstance(body, dict) or not body:
        # Half written it looks like this too, and then nothing would be asked for any more.
        raise SettingsError(f"The web configuration {path} holds no setting.", f"To serve without, name none. {_GUIDE}")
    _refuse_what_is_not_taken(path, body)
    return _config(path, _parsed(path, body))


def context_of(path: Path, tls: Tls) -> ssl.SSLContext:
    """Make the context of new connections from the files as they are now; raises SettingsError naming the file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[tls.min_version]
    context.maximum_version = _VERSIONS[tls.max_version]
    try:
        # A key with a passphrase would ask for it on the terminal.
        context.load_cert_chain(tls.cert_file, tls.key_file, password="")
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"The web configuration {path} names {tls.cert_file} and {tls.key_file}, which are no certificate with its "
            f"key: {_said(error)}.",
            _GUIDE,
        ) from error
    if tls.client_ca_file is not None:
        try:
            context.load_verify_locations(tls.client_ca_file)
        except (OSError, ValueError) as error:
            raise SettingsError(
                f"The web configuration {path} names {tls.client_ca_file}, which holds no authority's certificate: "
                f"{_said(error)}.",
                _GUIDE,
            ) from error
    context.verify_mode = _VERIFY[tls.client_auth]
    return context


def _refuse_what_is_not_taken(path: Path, body: Mapping[str, Any]) -> None:
    for place, instead in _NOT_TAKEN.items():
        section, _, name = place.rpartition(".")
        inside = body.get(section) if section else body
        if isinstance(inside, dict) and name in inside:
            raise SettingsError(
                f"The web configuration {path} sets {place}, which is not taken here.", f"Instead: {instead}."
            )


def _parsed(path: Path, body: Mapping[str, Any]) -> _File:
    try:
        return _File.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            said = f"has the key {place}, which is none of this format"
        elif first["type"] == "missing":
            said = f"lacks {place}"
        else:
            said = f"has a {place} that is not valid: {first['msg'].removeprefix('Value error, ')}"
        raise SettingsError(f"The web configuration {path} {said}.", _GUIDE) from error


def _config(path: Path, file: _File) -> WebConfig:
    for name, text in file.basic_auth_users.items():
        if not name or ":" in name:
            raise SettingsError(
                f"The web configuration {path} has a user without a name, or with a colon in it.", _GUIDE
            )
        if not _BCRYPT.fullmatch(text):
            raise SettingsError(
                f"The web configuration {path} gives {name} a password that is no bcrypt hash.",
                "`htpasswd -nBC 10 NAME` asks for a password and prints the hash.",
            )
    tls = file.tls_server_config
    if tls is not None:
        _check_tls(path, tls)
    given = file.http_server_config.headers.model_dump(by_alias=True)
    return WebConfig(
        tls=None if tls is None else _located(path.parent, tls),
        users={name: text.encode() for name, text in file.basic_auth_users.items()},
        headers=tuple((name, value) for name, value in given.items() if value),
    )


def _check_tls(path: Path, tls: _TlsServer) -> None:
    if tls.client_ca_file is not None and tls.client_auth_type is ClientAuth.NONE:
        raise SettingsError(
            f"The web configuration {path} names a client_ca_file and asks for no client certificate.",
            f"Set client_auth_type: {ClientAuth.REQUIRED.value}.",
        )
    if tls.client_ca_file is None and tls.client_auth_type is not ClientAuth.NONE:
        raise SettingsError(
            f"The web configuration {path} asks for client certificates and names no client_ca_file to verify them.",
            _GUIDE,
        )
    if list(TlsVersion).index(tls.min_version) > list(TlsVersion).index(tls.max_version):
        raise SettingsError(f"The web configuration {path} has a min_version above its max_version.", _GUIDE)


def _located(folder: Path, tls: _TlsServer) -> Tls:
    """Give the same with its paths seen from the file's own folder, as the toolkit has it."""
    return Tls(
        cert_file=folder / tls.cert_file,
        key_file=folder / tls.key_file,
        client_auth=tls.client_auth_type,
        client_ca_file=None if tls.client_ca_file is None else folder / tls.client_ca_file,
        min_version=tls.min_version,
        max_version=tls.max_version,
    )


def _said(error: Exception) -> str:
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return text.splitlines()[0].rstrip(".")

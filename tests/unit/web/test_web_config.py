"""What a web-config file may say, and that whatever else it says is refused in a sentence that repeats no secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sluicegate.errors import SettingsError
from sluicegate.web.config import ClientAuth, TlsVersion, read
from sluicegate.web.file import WebFile
from tests.certificates import Authority

HASH = "$2y$04$/Q0Q3gGQ0DWBZbYHY6U0ZeXzEAz0YLz1kmH7yUkGYJYBpJ4U5u4oO"
TLS = "tls_server_config: {cert_file: server.pem, key_file: server.key}\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "web.yaml"
    path.write_text(text)
    return path


def test_a_whole_file_is_read_with_its_paths_beside_it(tmp_path: Path) -> None:
    config = read(
        written(
            tmp_path,
            f"""
tls_server_config:
  cert_file: server.pem
  key_file: /etc/keys/server.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: scrapers.pem
  min_version: TLS13
http_server_config:
  http2: false
  headers: {{X-Frame-Options: deny, Strict-Transport-Security: max-age=600}}
basic_auth_users:
  prometheus: {HASH}
""",
        )
    )

    assert config.tls is not None
    assert config.tls.files == (tmp_path / "server.pem", Path("/etc/keys/server.key"), tmp_path / "scrapers.pem")
    assert config.tls.client_auth is ClientAuth.REQUIRED
    assert (config.tls.min_version, config.tls.max_version) == (TlsVersion.TLS13, TlsVersion.TLS13)
    assert dict(config.headers) == {"X-Frame-Options": "deny", "Strict-Transport-Security": "max-age=600"}
    assert config.users == {"prometheus": HASH.encode()}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no setting"),
        ("{}", "holds no setting"),
        ("- a list", "holds no setting"),
        ("a: [", "not valid YAML"),
        ("basic_auth: {ann: x}", "has the key basic_auth, which is none of this format"),
        (TLS.replace("}", ", ciphers: x}"), "has the key tls_server_config.ciphers, which is none of this format"),
        ("http_server_config: {headers: {X-Powered-By: us}}", "headers.X-Powered-By, which is none of this format"),
        ("tls_server_config: {cert_file: server.pem}", "lacks tls_server_config.key_file"),
        (TLS.replace("}", ", min_version: SSL3}"), "has a tls_server_config.min_version that is not valid"),
        (TLS.replace("}", ", min_version: TLS13, max_version: TLS12}"), "a min_version above its max_version"),
        (TLS.replace("}", ", client_ca_file: ca.pem}"), "asks for no client certificate"),
        (TLS.replace("}", ", client_auth_type: RequireAndVerifyClientCert}"), "names no client_ca_file"),
        # What asks for a certificate and verifies none protects nothing.
        (TLS.replace("}", ", client_auth_type: RequireAnyClientCert}"), "client_auth_type that is not valid"),
        (TLS.replace("}", ", client_allowed_sans: [a]}"), "client_allowed_sans, which is not taken here"),
        (TLS.replace("}", ", cipher_suites: [A]}"), "cipher_suites, which is not taken here"),
        ("rate_limit: {interval: 1s}", "sets rate_limit, which is not taken here"),
        ("basic_auth_users: {ann: hunter2}", "gives ann a password that is no bcrypt hash"),
        (f"basic_auth_users: {{'a:b': {HASH}}}", "a user without a name, or with a colon"),
        ("basic_auth_users: {ann: 12345}", "has a basic_auth_users.ann that is not valid"),
    ],
)
def test_any_other_file_is_refused_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)

    with pytest.raises(SettingsError) as refused:
        read(path)

    assert said in refused.value.message
    assert str(path) in refused.value.message
    assert "hunter2" not in str(refused.value)
    assert "12345" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"missing\.yaml cannot be read: No such file"):
        read(tmp_path / "missing.yaml")


def test_a_certificate_without_its_key_is_refused_and_leaves_the_one_before_in_force(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.server()
    web = WebFile(written(tmp_path, TLS))
    first = web.context

    assert not web.renew()
    # when the certificate is there and its key is still the old one
    other = authority.server("other")
    os.replace(other.cert, tmp_path / "server.pem")
    assert not web.renew()
    assert web.context is first
    # then the key completes it
    os.replace(other.key, tmp_path / "server.key")
    assert web.renew()
    assert web.context is not first
    assert not web.renew()


def test_a_file_that_stops_being_right_changes_nothing_until_it_is_right_again(tmp_path: Path) -> None:
    web = WebFile(written(tmp_path, f"basic_auth_users: {{ann: {HASH}}}\n"))

    for broken in ("", "basic_auth_users: {ann: x}", TLS):
        written(tmp_path, broken)
        assert not web.renew()
        assert set(web.config.users) == {"ann"}
    written(tmp_path, f"basic_auth_users: {{bob: {HASH}}}\n")
    assert web.renew()
    assert set(web.config.users) == {"bob"}


def test_an_authority_s_file_without_a_certificate_is_named(tmp_path: Path) -> None:
    Authority(tmp_path).server()
    (tmp_path / "scrapers.pem").write_text("nothing of the kind")
    asked = ", client_auth_type: RequireAndVerifyClientCert, client_ca_file: scrapers.pem}"

    with pytest.raises(SettingsError, match=r"scrapers\.pem, which holds no authority's certificate"):
        WebFile(written(tmp_path, TLS.replace("}", asked)))

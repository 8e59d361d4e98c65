"""What does a process need to know of its Redis beside the address? Certificates, Sentinels, or a cluster's nodes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from sluicegate.section import Section


def _host_and_port(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not host or not colon or not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) < 65_536:
        raise ValueError(f"{text!r} is not HOST:PORT")
    return text


Address = Annotated[str, AfterValidator(_host_and_port)]


class RedisSettings(Section):
    """Set how the queue's Redis is reached: the certificates of a rediss:// address, its Sentinels, or its cluster.

    With `sentinels` or `cluster_nodes`, host and port of `redis_url` are not used; its scheme, user, password and
    database are. Sentinels and nodes are reached with TLS where the address is rediss://.
    """

    ca_file: Path | None = Field(
        default=None, description="Authority that signed the server's certificate; the system's without one."
    )
    cert_file: Path | None = Field(default=None, description="Client certificate that the server asks for.")
    key_file: Path | None = Field(default=None, description="Key of that certificate.")
    sentinels: tuple[Address, ...] = Field(
        default=(), description="Sentinels that know the primary, each HOST:PORT; name all of them."
    )
    service: str | None = Field(default=None, min_length=1, description="Name under which the Sentinels know it.")
    sentinel_username: str | None = Field(default=None, min_length=1, description="User at the Sentinels.")
    sentinel_password_file: Path | None = Field(default=None, description="File with the password at the Sentinels.")
    cluster_nodes: tuple[Address, ...] = Field(
        default=(), description="Nodes of a cluster to ask first, each HOST:PORT; name several."
    )

    @model_validator(mode="after")
    def _check_across(self) -> Self:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("redis.cert_file and redis.key_file belong together: set both or neither")
        if self.sentinels and self.cluster_nodes:
            raise ValueError("redis.sentinels and redis.cluster_nodes exclude each other")
        if bool(self.sentinels) != (self.service is not None):
            raise ValueError("redis.sentinels and redis.service belong together: set both or neither")
        if not self.sentinels and (self.sentinel_username or self.sentinel_password_file):
            raise ValueError("redis.sentinel_username and redis.sentinel_password_file need redis.sentinels")
        if self.sentinel_username and not self.sentinel_password_file:
            raise ValueError("redis.sentinel_username needs redis.sentinel_password_file")
        return self


PLAIN = RedisSettings()


def host_and_port(address: str) -> tuple[str, int]:
    """Split a checked address; an IPv6 host loses its brackets."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)

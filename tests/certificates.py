"""Real certificates for tests: an authority, and what it signs, as files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True, slots=True)
class Pair:
    """Name the files of one certificate and of its key."""

    cert: Path
    key: Path

    @property
    def files(self) -> tuple[str, str]:
        """Give both as text, as HTTP clients take them."""
        return str(self.cert), str(self.key)


class Authority:
    """Sign certificates for this machine's loopback and for clients, into a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._ca = trustme.CA()
        self.ca = folder / "ca.pem"
        self._ca.cert_pem.write_to_path(self.ca)

    def server(self, name: str = "server") -> Pair:
        """Sign a certificate of 127.0.0.1 and localhost; the files of that name change at once, as a rename does it."""
        return self._write(name, self._ca.issue_cert("127.0.0.1", "localhost"))

    def client(self, name: str = "client") -> Pair:
        """Sign a client's certificate."""
        return self._write(name, self._ca.issue_cert(f"{name}@scrapers.example"))

    def _write(self, name: str, issued: trustme.LeafCert) -> Pair:
        pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        for blob, path in ((issued.private_key_pem, pair.key), (issued.cert_chain_pems[0], pair.cert)):
            written = path.with_suffix(".new")
            blob.write_to_path(written)
            os.replace(written, path)
        return pair

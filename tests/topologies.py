"""Real servers in the shapes that production has: behind TLS and a user, watched by Sentinels, and as a cluster."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from drill.children import Children
from drill.ports import LOOPBACK, free_port
from drill.readiness import answers_ping
from drill.server import ServerKind, find_server
from tests.certificates import Authority
from tests.queues import wait_until

SERVICE = "the-queue"
_SLOTS = 16_384
_SENTINEL_ID = "5e" * 19 + "{:02x}"
_DOWN_AFTER_MS = 400


def start_server(
    children: Children, kind: ServerKind, name: str, *options: str, port: int | None = None, tls: bool = False
) -> int:
    """Start a server on a free port of loopback without persistence, and give the port."""
    program = find_server(kind).path
    folder = children.folder / name
    folder.mkdir(exist_ok=True)

    def words(at: int) -> Sequence[str]:
        listening = ("--port", "0", "--tls-port", str(at)) if tls else ("--port", str(at))
        return (
            str(program),
            *listening,
            *("--bind", LOOPBACK, "--dir", str(folder), "--save", "", "--appendonly", "no", "--logfile", "", *options),
        )

    guarded = tls or "--requirepass" in options
    return children.start_listening(name, words, _accepts if guarded else answers_ping, port=port)


def _accepts(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), 1).close()
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class TlsServer:
    """Hold a server that takes TLS with a client certificate only; `admin` is its default user's client."""

    port: int
    authority: Authority
    admin: Any


def tls_server(children: Children, kind: ServerKind, folder: Path) -> TlsServer:
    """Start a server that speaks TLS alone and asks every client for a certificate of the same authority."""
    authority = Authority(folder)
    own, client = authority.server(), authority.client()
    files = ("--tls-cert-file", str(own.cert), "--tls-key-file", str(own.key), "--tls-ca-cert-file", str(authority.ca))
    port = start_server(children, kind, f"tls-{kind}", *files, "--tls-auth-clients", "yes", tls=True)
    admin = redis.Redis(
        host=LOOPBACK,
        port=port,
        ssl=True,
        ssl_ca_certs=str(authority.ca),
        ssl_certfile=str(client.cert),
        ssl_keyfile=str(client.key),
        ssl_cert_reqs=ssl.CERT_REQUIRED,
        decode_responses=True,
    )
    wait_until(admin.ping, "the server with TLS")
    return TlsServer(port, authority, admin)


class Watched:
    """Run a primary, a replica and three Sentinels that know each other from the start."""

    def __init__(self, children: Children, kind: ServerKind, *, password: str = "") -> None:
        self._children = children
        self.kind = kind
        # Without the delay a replica is in step at once.
        secret = ("--requirepass", password, "--masterauth", password) if password else ()
        shared = ("--repl-diskless-sync-delay", "0", *secret)
        self.names = {"one": 0, "two": 0}
        self.names["one"] = start_server(children, kind, "one", *shared)
        of_one = ("--replicaof", LOOPBACK, str(self.names["one"]))
        self.names["two"] = start_server(children, kind, "two", *of_one, *shared)
        self.clients = {
            name: redis.Redis(port=port, password=password or None, decode_responses=True)
            for name, port in self.names.items()
        }
        wait_until(
            lambda: self.info("two")["master_link_status"] == "up" and not self.info("two")["master_sync_in_progress"],
            "the replica in step",
        )
        ports = [free_port() for _ in range(3)]
        for number, port in enumerate(ports):
            self._start_sentinel(number, ports, port, password)
        self.sentinels = tuple(f"{LOOPBACK}:{port}" for port in ports)
        self._asked: list[Any] = [redis.Redis(port=port, decode_responses=True) for port in ports]

    def info(self, name: str) -> dict[str, Any]:
        return dict(self.clients[name].info("replication"))

    def kill(self, name: str) -> None:
        """Kill a server or a Sentinel (`sentinel-0`) with SIGKILL."""
        self._children.kill(name)

    def is_primary(self, name: str) -> bool:
        return str(self.info(name)["role"]) == "master"

    def in_step(self) -> None:
        """Wait until the replica has all that the primary has written by now."""
        written = int(self.info("one")["master_repl_offset"])
        wait_until(lambda: int(self.info("two")["slave_repl_offset"]) >= written, "the replica in step")

    def is_replica_of(self, replica: str, primary: str) -> bool:
        """Say whether a server replicates another, and has caught up once."""
        info = self.info(replica)
        of = (info["role"], info.get("master_port"), info.get("master_link_status"))
        return of == ("slave", self.names[primary], "up") and not info["master_sync_in_progress"]

    def cut_off(self) -> None:
        """Let the replica receive nothing any more: what is written from now on is lost with the primary."""
        self.clients["two"].replicaof(LOOPBACK, 1)

    def pause(self, name: str) -> None:
        self._children.suspend(name)

    def resume(self, name: str) -> None:
        self._children.resume(name)

    def bring_back(self, name: str) -> None:
        """Start a server again that was killed, with the words of its first start."""
        self._children.restart(name)

    def all_name(self, name: str) -> bool:
        """Say whether each Sentinel gives this server as the primary."""
        port = str(self.names[name])
        return all(
            one.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)[1] == port for one in self._asked
        )

    def _start_sentinel(self, number: int, ports: Sequence[int], port: int, password: str) -> None:
        name = f"sentinel-{number}"
        folder = self._children.folder / name
        folder.mkdir(exist_ok=True)
        others = [
            f"sentinel known-sentinel {SERVICE} {LOOPBACK} {at} {_SENTINEL_ID.format(other)}"
            for other, at in enumerate(ports)
            if other != number
        ]
        lines = [
            f"port {port}",
            f"bind {LOOPBACK}",
            f"dir {folder}",
            f"sentinel myid {_SENTINEL_ID.format(number)}",
            f"sentinel monitor {SERVICE} {LOOPBACK} {self.names['one']} 2",
            f"sentinel down-after-milliseconds {SERVICE} {_DOWN_AFTER_MS}",
            f"sentinel failover-timeout {SERVICE} 2000",
            *([f"sentinel auth-pass {SERVICE} {password}"] if password else []),
            f"sentinel known-replica {SERVICE} {LOOPBACK} {self.names['two']}",
            *others,
        ]
        config = folder / "sentinel.conf"
        config.write_text("\n".join(lines) + "\n")
        program = find_server(self.kind).path
        self._children.start_listening(
            name, lambda _: (str(program), str(config), "--sentinel"), answers_ping, port=port
        )


class Nodes:
    """Run a cluster of three primaries, each with a third of the slots."""

    def __init__(self, children: Children, kind: ServerKind) -> None:
        self._children = children
        self.kind = kind
        self.names = [f"{kind}-node-{number}" for number in range(3)]
        self.ports: list[int] = []
        buses = []
        for name in self.names:
            bus = free_port()
            # No test waits for the nodes' judgement of each other, and none may be met by it when the machine stands
            # still for a moment: a node that heard of no majority in time says for seconds that the cluster is down.
            options = ("--cluster-enabled", "yes", "--cluster-port", str(bus), "--cluster-node-timeout", "60000")
            self.ports.append(start_server(children, kind, name, *options, "--cluster-require-full-coverage", "no"))
            buses.append(bus)
        self.clients: list[Any] = [redis.Redis(port=port, decode_responses=True) for port in self.ports]
        share = _SLOTS // 3
        for number, client in enumerate(self.clients):
            last = _SLOTS - 1 if number == 2 else (number + 1) * share - 1
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", number * share, last)
            client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for client in self.clients[1:]:
            client.execute_command("CLUSTER", "MEET", LOOPBACK, self.ports[0], buses[0])
        wait_until(lambda: all(self._whole(client) for client in self.clients), "a cluster that is whole")

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(f"{LOOPBACK}:{port}" for port in self.ports)

    def slot(self, key: str) -> int:
        return int(self.clients[0].execute_command("CLUSTER", "KEYSLOT", key))

    def owner(self, key: str) -> int:
        """Give the number of the node that has a key's slot, by what the nodes themselves say."""
        slot = self.slot(key)
        for number, client in enumerate(self.clients):
            for row in self._words(client, "SLOTS"):
                if row[0] <= slot <= row[1] and row[2][1] == self.ports[number]:
                    return number
        raise AssertionError(f"nobody has slot {slot}")

    def move(self, key: str, to: int) -> None:
        """Move a key's slot with all keys in it to another node, as `redis-cli --cluster reshard` does."""
        slot, source, target = self.slot(key), self.clients[self.owner(key)], self.clients[to]
        from_id, to_id = (node.execute_command("CLUSTER", "MYID") for node in (source, target))
        target.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", from_id)
        source.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", to_id)
        while found := source.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100):
            source.execute_command("MIGRATE", LOOPBACK, self.ports[to], "", 0, 5000, "KEYS", *found)
        for node in (target, source, *self.clients):
            node.execute_command("CLUSTER", "SETSLOT", slot, "NODE", to_id)

    def empty(self) -> None:
        for client in self.clients:
            client.flushall()
            client.function_flush()

    def pause(self, number: int) -> None:
        self._children.suspend(self.names[number])

    def resume(self, number: int) -> None:
        self._children.resume(self.names[number])

    def _whole(self, client: Any) -> bool:
        info = dict(line.split(":", 1) for line in self._words(client, "INFO").split())
        return (info["cluster_state"], info["cluster_known_nodes"], info["cluster_slots_ok"]) == (
            "ok",
            "3",
            str(_SLOTS),
        )

    @staticmethod
    def _words(client: Any, subcommand: str) -> Any:
        """Ask word by word: redis-py rearranges the answers of what it knows as one command."""
        return client.execute_command("CLUSTER", subcommand)

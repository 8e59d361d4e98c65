"""The drill's own servers on the command line: `sluicegate drill provider` and `sluicegate drill proxy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from drill.ports import LOOPBACK

PROVIDER_EXAMPLE = "Example: sluicegate drill provider --port 8081 --log effects.jsonl --service-s 0.3 --jitter-s 0.1"
PROXY_EXAMPLE = "Example: sluicegate drill proxy --port 8474"

Host = Annotated[str, typer.Option(help="Address to listen on; anything but loopback shows a test server to others.")]
Seed = Annotated[int | None, typer.Option(help="Seed of its random numbers, for a run that can be repeated.")]


def provider(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")],
    log: Annotated[Path, typer.Option(help="File that gets a JSON line for every effect; calls go beside it.")],
    service_s: Annotated[float, typer.Option(min=0, help="Mean time to answer, seconds.")] = 0.3,
    jitter_s: Annotated[float, typer.Option(min=0, help="Half the width of its spread, seconds.")] = 0.1,
    forgets: Annotated[
        list[str] | None, typer.Option(metavar="CLASS", help="A class whose keys it does not honour; repeatable.")
    ] = None,
    host: Host = LOOPBACK,
    seed: Seed = None,
) -> None:
    """Serve the fake provider: `{"ok":true}` after a while, one effect a key, each effect in its log."""
    # Loaded late: the drill's other commands need no HTTP server.
    from drill.provider import ProviderOptions, serve_provider  # noqa: PLC0415 (as above)

    serve_provider(ProviderOptions(log, service_s, jitter_s, seed, frozenset(forgets or ())), port, host)


def proxy(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the control API; 0 takes a free one.")],
    host: Host = LOOPBACK,
    seed: Seed = None,
) -> None:
    """Serve the fault proxy: Toxiproxy's control API, and the HTTP proxies that are made through it."""
    from drill.proxy_api import serve_proxy  # noqa: PLC0415 (as above)

    serve_proxy(port, host, seed)


app = typer.Typer(no_args_is_help=True, add_completion=False, help="The drill's own servers.")
app.command(epilog=PROVIDER_EXAMPLE)(provider)
app.command(epilog=PROXY_EXAMPLE)(proxy)

if __name__ == "__main__":
    app()

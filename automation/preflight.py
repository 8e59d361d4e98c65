"""Look at the server before a recovery leans on it: does it keep what it is told, and does it evict nothing?"""

from __future__ import annotations

import structlog

from sluicegate.server_findings import CONFIG_NAMES, Finding, ServerSeen, unsound
from sluicegate.store import Store

log = structlog.get_logger(__name__)


def weaknesses(store: Store) -> tuple[Finding, ...]:
    """Give what must be fixed on the server, and log it; raises StoreError where it does not answer."""
    found = unsound(ServerSeen(store.server_info(), store.server_config(CONFIG_NAMES)))
    for finding in found:
        log.error("server_weak", finding=finding.name, said=finding.said, unblock=finding.hint)
    return found

"""Which receivers in an Alertmanager file are people's own, to be kept when it is written again?"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from rules.routing import HEARTBEAT_RECEIVER, PAGES_RECEIVER
from sluicegate.errors import UsageError

BEGIN = "# Yours from here on: who is paged and how, and who watches the watchdog. Writing this file again keeps it."
END = "# Yours up to here."
_OWN = re.compile(rf"^ *{re.escape(BEGIN)}\n(.*?)^ *{re.escape(END)}$", re.MULTILINE | re.DOTALL)
# As first generated, they tell nobody.
PLACEHOLDERS = "".join(f'  - name: "{name}"\n' for name in (PAGES_RECEIVER, HEARTBEAT_RECEIVER))


def own_receivers(path: Path) -> str:
    """Give the lines of a written file that are people's own, the placeholders where there is no file yet.

    Raises UsageError where writing the file again would lose what is theirs: they would be paged no more.
    """
    if not path.exists():
        return PLACEHOLDERS
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read, so what of it is yours would be lost: {error}.", _ASIDE) from error
    own = _OWN.search(text)
    if own is None:
        raise UsageError(f"{path} does not say which of its receivers are yours, so they would be lost.", _ASIDE)
    for name in (PAGES_RECEIVER, HEARTBEAT_RECEIVER):
        if name not in _names(own[1]):
            raise UsageError(f"{path} has no receiver {name} between the lines that say what is yours.", _ASIDE)
    return own[1]


_ASIDE = "Move it aside, generate, and put your receivers between the lines that say so."


def _names(own: str) -> set[str]:
    try:
        receivers = yaml.safe_load(f"receivers:\n{own}")["receivers"]
        return {receiver["name"] for receiver in receivers}
    except (yaml.YAMLError, TypeError, KeyError):
        return set()

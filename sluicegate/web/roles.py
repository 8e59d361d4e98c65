"""What may a caller do? Roles, and which of them is enough for what."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """Name what a caller may do; each of the last three may do what the one before it may."""

    NOTIFY = "notify"  # post notifications, and see nothing
    VIEW = "view"  # see everything, and change nothing
    OPERATE = "operate"  # close, end, start what proves itself, ask
    APPROVE = "approve"  # give the word by which something goes on

    def allows(self, needed: Role) -> bool:
        """Say whether this role is enough where `needed` is asked for."""
        if needed is Role.NOTIFY:
            return self is not Role.VIEW
        order = list(Role)
        return order.index(self) >= order.index(needed)

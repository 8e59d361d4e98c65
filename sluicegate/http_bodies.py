"""Hold what HTTP carries in and out: the job asked for, the decision, the job's record, and what went wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from sluicegate.submission import MAX_CLASS, MAX_PAYLOAD_BYTES


class JobRequest(BaseModel):
    """Ask for one job. Without a deadline it gets its class's; at most one of the two may be given."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    # The bounds in the schema are those that a submission is checked against; the check itself is not repeated here.
    job_class: str = Field(
        alias="class",
        description="A declared class.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_CLASS, "pattern": "^[!-~]+$"},
    )
    payload: Any = Field(
        description=(
            "Any JSON. It is stored as compact JSON text with sorted names, so a repeat may be spaced and ordered "
            f"differently; that text has at most {MAX_PAYLOAD_BYTES} bytes."
        )
    )
    deadline_s: float | None = Field(
        default=None, description="Seconds from the decision.", json_schema_extra={"exclusiveMinimum": 0}
    )
    deadline_ts: float | None = Field(
        default=None, description="Unix time in seconds.", json_schema_extra={"exclusiveMinimum": 0}
    )
    cost_class: str | None = Field(
        default=None,
        description="A declared cost class; by default the class's own.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_CLASS, "pattern": "^[!-~]+$"},
    )

    def payload_text(self) -> str:
        """Render the payload as it is stored; raises ValueError for a number that JSON does not have."""
        return json.dumps(self.payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


class DecisionBody(BaseModel):
    """Answer one submission: accepted, now or by an earlier request with the same key (`replayed`)."""

    accepted: bool
    job_id: str
    reason: str = Field(description="Empty where the job is accepted.")
    retry_after_s: float | None = Field(description="When coming back may help; null where it never does.")
    replayed: bool = Field(description="The key was decided before.")


class ProblemBody(BaseModel):
    """Say what went wrong (RFC 9457). A refused job carries its decision, too."""

    type: str = Field(description="Where this reason is explained.")
    title: str
    status: int
    detail: str
    reason: str = Field(description="The reason in one word; that of the decision where the job is refused.")
    accepted: bool | None = Field(default=None, description="False where the job is refused; else absent.")
    job_id: str | None = Field(default=None, description="The id that a refused job keeps for later repeats.")
    retry_after_s: float | None = Field(default=None, description="Null where coming back never helps.")
    replayed: bool | None = Field(default=None, description="The key was decided before.")


class JobDecision(BaseModel):
    """Repeat the stored decision on a job; times in Unix seconds."""

    accepted: bool
    reason: str
    decided_ts: float | None


class JobBody(BaseModel):
    """Show one job; times in Unix seconds of the queue's server, null for what has not happened."""

    job_id: str
    state: str
    job_class: str = Field(serialization_alias="class")
    cost_class: str | None
    attempt: int
    deadline_ts: float
    admitted_ts: float | None
    eligible_ts: float | None
    started_ts: float | None = Field(description="The start of the latest attempt.")
    ended_ts: float | None
    decision: JobDecision

    @classmethod
    def of(cls, job_id: str, record: Mapping[str, Any]) -> Self:
        """Take what the store knows of a job."""
        job: Mapping[str, str] = record["job"]
        stored: Mapping[str, str] = record.get("decision") or {}
        admitted = _seconds(job.get("admitted_at"))
        decided = _seconds(stored.get("at"))
        return cls(
            job_id=job_id,
            state=job["state"],
            # An undeclared class that the settings let in is counted under another name; its own is what was asked for.
            job_class=job.get("declared") or job["class"],
            cost_class=job["cost"] if job.get("cost", "-") != "-" else None,
            attempt=int(job["attempt"]),
            deadline_ts=int(job["deadline"]) / 1000,
            admitted_ts=admitted,
            eligible_ts=_seconds(job.get("eligible")),
            started_ts=_seconds(job.get("started_at")),
            ended_ts=_seconds(job.get("ended_at")),
            decision=JobDecision(
                accepted=stored.get("accepted", "1") == "1",
                reason=stored.get("reason", ""),
                decided_ts=admitted if decided is None else decided,
            ),
        )


def _seconds(ms: str | None) -> float | None:
    return int(ms) / 1000 if ms else None

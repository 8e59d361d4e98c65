"""Faults to plant in the library's source: the machine has to find each one, or it proves nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """Name one fault as what is written and what is put in its place; `hidden` takes the machine longer to find."""

    name: str
    right: str
    wrong: str
    hidden: bool = False

    def planted(self, source: str) -> str:
        """Give the source with the fault; a fault whose place is gone, or is no longer one, fails."""
        assert source.count(self.right) == 1, f"the fault {self.name!r} belongs in {source.count(self.right)} places"
        return source.replace(self.right, self.wrong)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "an old fence may settle",
        "if not job or digits(job.fence) ~= q.a.fence then return stale(q, job) end",
        "if not job then return stale(q, job) end",
    ),
    Fault(
        "a job stays in the age index of its class",
        "    redis.call('ZREM', p .. 'queue:enqueued:' .. class, id)\n",
        "",
    ),
    Fault(
        "a repeated settlement counts its call again",
        "  if before then return { answer = 'repeat', state = before } end\n",
        "  if before then\n    if q.a.call then F.count_call(q, job.window, q.a.call.kind) end\n"
        "    return { answer = 'repeat', state = before }\n  end\n",
    ),
    Fault(
        "a lost job goes straight back to pending",
        "  J.move(q, job, 'unknown', { losses = losses, cause = cause })\n  return 'unknown'",
        "  J.move(q, job, 'ready', { losses = losses, worker = '', eligible = q.now })\n  return 'ready'",
    ),
    Fault(
        "a claim starts jobs under the margin",
        "if job.deadline - q.now < q.s.timings.margin_ms then\n      expired",
        "if job.deadline - q.now < 0 then\n      expired",
    ),
    Fault(
        "a claim pulls in a drain",
        "  if gate == 'drain' then return nil end\n",
        "",
    ),
    Fault(
        "a repeated key under another payload is no conflict",
        "if known.fp ~= job.fp then",
        "if false then",
    ),
    Fault(
        "a full cost class is not passed over",
        "  return costly and costly.max_running > 0\n"
        "    and redis.call('ZCARD', q.p .. 'running:cost:' .. cost) >= costly.max_running",
        "  return false",
    ),
    Fault(
        "a refusal that has come due is never decided again",
        "or retry_at == 0 or retry_at > q.now then return replay(q, known) end",
        "or true then return replay(q, known) end",
    ),
    Fault(
        "a machine lets a job out of blocked",
        "if job.state ~= 'unknown' and not (job.state == 'blocked' and person) then",
        "if job.state ~= 'unknown' and job.state ~= 'blocked' then",
        hidden=True,
    ),
    Fault(
        "the record of a late worker does not name the job",
        "'at', digits(q.now), 'kind', 'late_worker', 'job',",
        "'at', digits(q.now), 'kind', 'late_worker', 'for',",
        hidden=True,
    ),
    Fault(
        "the pending limit forgets the delayed",
        "redis.call('ZCARD', q.p .. 'queue:enqueued') + redis.call('ZCARD', q.p .. 'queue:delayed')",
        "redis.call('ZCARD', q.p .. 'queue:enqueued')",
        hidden=True,
    ),
    Fault(
        "a retry keeps within no budget",
        "if retries >= q.s.retry_budget then return J.block(q, job, 'retry_budget') end",
        "if retries > q.s.retry_budget then return J.block(q, job, 'retry_budget') end",
        hidden=True,
    ),
    Fault(
        "a canary is pulled after green",
        "if gate == 'recovering' and not g.green then return",
        "if gate == 'recovering' then return",
        hidden=True,
    ),
    Fault(
        "a repeated claim starts further jobs",
        "  if last.request ~= q.a.request then return nil end\n",
        "  if true then return nil end\n",
    ),
    Fault(
        "a gate move is not logged",
        "  G.log(q, g, { from = from, to = g.drain_state, reason = why.reason, actor = why.actor, note = why.note,\n"
        "    figures = why.figures, run = why.run })\n",
        "",
    ),
)

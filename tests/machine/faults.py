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
        "a job that ran is ready again after a restore",
        "if state == 'running' then return 'unknown' end",
        "if state == 'running' then return 'ready' end",
    ),
    Fault(
        "an old fence may settle",
        "if not job or digits(job.fence) ~= s.fence then return stale(q, s, job) end",
        "if not job then return stale(q, s, job) end",
    ),
    Fault(
        "a job stays in the deadline index of its pair",
        "    index(q, 'ZREM', keys.ready, id)\n",
        "",
    ),
    Fault(
        "a repeated settlement counts its call again",
        "  if before then return 'repeat', before end\n",
        "  if before then\n    if s.kind then F.count_call(q, job.window, s.kind) end\n"
        "    return 'repeat', before\n  end\n",
    ),
    Fault(
        "a lost job goes straight back to pending",
        "  J.move(q, job, 'unknown', { cause = cause })\n  return 'unknown'",
        "  J.move(q, job, 'ready', { worker = '', eligible = q.now })\n  return 'ready'",
    ),
    Fault(
        "a claim starts jobs under the margin",
        "if job and job.deadline - q.now < q.s.timings.margin_ms then",
        "if job and job.deadline - q.now < 0 then",
    ),
    Fault(
        "a claim pulls in a drain",
        "  if gate == 'drain' then return nothing, 0 end\n",
        "",
    ),
    Fault(
        "a repeated key under another payload is no conflict",
        "if fp ~= job.fp then return 2, 'conflict', -1 end",
        "",
    ),
    Fault(
        "a full cost class is not passed over",
        "\n    or room(q, q.p .. 'running:cost:' .. pair.cost, q.s.cost_classes[pair.cost]) <= 0",
        "",
    ),
    Fault(
        "a refusal that has come due is never decided again",
        "  if retry_at == 0 or retry_at > q.now then\n    count(q, 'replayed')",
        "  if true then\n    count(q, 'replayed')",
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
        "local room = s.max_pending - load.ready - load.delayed",
        "local room = s.max_pending - load.ready",
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
        "if gate == 'recovering' and not g.green then return take",
        "if gate == 'recovering' then return take",
        hidden=True,
    ),
    Fault(
        "a repeated claim starts further jobs",
        "  if last[1] ~= request then return nil end\n",
        "  if true then return nil end\n",
    ),
    Fault(
        "a restored job keeps its fence",
        "if v[i + 8] ~= '0' then fence = digits(math.max(tonumber(v[i + 8]) + 1, q.us)) end",
        "fence = v[i + 8]",
    ),
    Fault(
        "a contract stays in force that was replaced",
        "  if settings_kept.by[digest] then return settings_kept.by[digest], digest end\n",
        "  if next(settings_kept.by) then return select(2, next(settings_kept.by)), digest end\n",
    ),
    Fault(
        "an alert's run is bound by no kill switch",
        "  if redis.call('EXISTS', q.p .. 'kill') == 1 then return 'kill_switch' end\n",
        "",
        hidden=True,
    ),
    Fault(
        "a gate move is not logged",
        "  G.log(q, g, { from = from, to = g.drain_state, reason = why.reason, actor = why.actor, note = why.note,\n"
        "    figures = why.figures, run = why.run })\n",
        "",
    ),
)

-- unresolved {offset, limit}: unknown jobs with what a resolver needs, the longest unknown first; at most 100. Read-only.
-- since and now: ms of Redis TIME. known_start: the ledger has seen every start of this job, which it has not where a
-- snapshot was restored and nothing has started since.
-- -> {now, rows = [{id, since, key, class, fence, effects, confirmed, intent_fence, known_start}]}
function commands.unresolved(q)
  local offset = q.a.offset or 0
  local last = offset + math.min(q.a.limit or 100, 100) - 1
  local flat = redis.call('ZRANGE', q.p .. 'queue:unknown', offset, last, 'WITHSCORES')
  local rows = {}
  for i = 1, #flat, 2 do
    local row = P.row(q, flat[i])
    if row and row.job.state == 'unknown' then
      local job, ledger = row.job, row.ledger
      local class = q.s and q.s.classes[job.class]
      rows[#rows + 1] = { id = row.id, since = tonumber(flat[i + 1]), key = job.key, class = job.class,
        fence = job.fence, effects = class and class.effects or 'keyed', confirmed = ledger.confirmed ~= nil,
        intent_fence = ledger.fence or '', known_start = job.restored_fence ~= job.fence }
    end
  end
  return { now = q.now, rows = rows }
end
readonly.unresolved = true

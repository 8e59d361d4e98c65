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
    local job = J.read(q, flat[i])
    if job and job.state == 'unknown' then
      local fence = digits(job.fence)
      rows[#rows + 1] = { id = job.id, since = tonumber(flat[i + 1]), key = job.id, class = job.class, fence = fence,
        effects = J.effects(q, job.class), confirmed = job.confirmed ~= nil, intent_fence = job.intent_fence or '',
        known_start = job.restored_fence ~= fence }
    end
  end
  return { now = q.now, rows = rows }
end
readonly.unresolved = true

-- renew {worker, leases = [{id, fence}], inflight}: keep leases of jobs that make progress; at most 100.
-- -> {lost = [id], drain_state, epoch}
function commands.renew(q)
  local g = G.read(q)
  local lost = {}
  if not q.s then return { lost = lost, drain_state = 'drain', epoch = '0' } end
  for _, lease in ipairs(q.a.leases) do
    local job = J.read(q, lease.id)
    if job and job.state == 'running' and digits(job.fence) == lease.fence then
      local lease_end = q.now + q.s.lease_ms
      redis.call('HSET', J.key(q, job.id), 'lease_end', digits(lease_end))
      redis.call('HINCRBY', J.key(q, job.id), 'rev', 1)
      job.lease_end = lease_end
      J.enter(q, job)
    else
      lost[#lost + 1] = lease.id
    end
  end
  redis.call('ZADD', q.p .. 'workers', q.now, q.a.worker)
  redis.call('HSET', q.p .. 'worker:' .. q.a.worker, 'seen', digits(q.now))
  redis.call('PEXPIRE', q.p .. 'worker:' .. q.a.worker, 60000)
  return { lost = lost, drain_state = G.effective(g), epoch = digits(g.epoch) }
end

-- hello {worker, version, report}: say that a worker lives; report is its last stop_pull report, if any.
-- -> {drain_state, epoch, digest, settings}
function commands.hello(q)
  local g = G.read(q)
  redis.call('ZADD', q.p .. 'workers', q.now, q.a.worker)
  redis.call('ZREMRANGEBYSCORE', q.p .. 'workers', '-inf', q.now - 60000)
  local key = q.p .. 'worker:' .. q.a.worker
  redis.call('HSET', key, 'seen', digits(q.now), 'version', q.a.version or '')
  if q.a.report then redis.call('HSET', key, 'report', q.a.report) end
  redis.call('PEXPIRE', key, 60000)
  return { drain_state = G.effective(g), epoch = digits(g.epoch), digest = q.s and settings_digest or '' }
end

-- goodbye {worker}: forget a worker that has stopped by itself.
function commands.goodbye(q)
  redis.call('ZREM', q.p .. 'workers', q.a.worker)
  redis.call('DEL', q.p .. 'worker:' .. q.a.worker)
  return { answer = 'ok' }
end

-- workers {}: who was seen, which epoch each confirmed, and how many jobs each holds. Read-only.
-- -> {workers = [{id, seen_ms_ago, epoch, inflight, report}], epoch, leases}
function commands.workers(q)
  local inflight, rows = {}, {}
  for _, id in ipairs(redis.call('ZRANGE', q.p .. 'queue:leases', 0, 999)) do
    local worker = redis.call('HGET', J.key(q, id), 'worker') or ''
    inflight[worker] = (inflight[worker] or 0) + 1
  end
  local flat = redis.call('ZRANGE', q.p .. 'workers', 0, 999, 'WITHSCORES')
  for i = 1, #flat, 2 do
    local h = hash_of(q.p .. 'worker:' .. flat[i])
    rows[#rows + 1] = { id = flat[i], seen_ms_ago = q.now - tonumber(flat[i + 1]), epoch = h.epoch or '0',
      inflight = inflight[flat[i]] or 0, report = h.report or '' }
  end
  return { workers = rows, epoch = text_of(q.p .. 'control:epoch') or '0',
    leases = redis.call('ZCARD', q.p .. 'queue:leases') }
end
readonly.workers = true

-- intent {worker, id, fence}: record, before the first call, that a side effect may follow; re-checks gate and fence.
-- -> {answer = go | stop | stale, drain_state, epoch}
function commands.intent(q)
  local g = G.read(q)
  local gate = G.effective(g)
  local job = q.s and J.read(q, q.a.id)
  local answer = { drain_state = gate, epoch = digits(g.epoch) }
  if not job or job.state ~= 'running' or digits(job.fence) ~= q.a.fence then
    answer.answer = 'stale'
    return answer
  end
  local pulls = gate == 'admit' or gate == 'reject_new' or (gate == 'recovering' and (g.green or job.canary))
  if not pulls or (job.canary and (job.window ~= g.window or g.green)) then
    answer.answer = 'stop'
    return answer
  end
  redis.call('HSET', q.p .. 'ledger:' .. job.key, 'intent', digits(q.now), 'job', job.id, 'worker', q.a.worker, 'attempt',
    digits(job.attempt), 'fence', digits(job.fence))
  redis.call('HDEL', q.p .. 'ledger:' .. job.key, 'confirmed')
  redis.call('PERSIST', q.p .. 'ledger:' .. job.key)
  answer.answer = 'go'
  return answer
end

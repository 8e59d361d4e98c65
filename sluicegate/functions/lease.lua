-- renew worker (id fence)*: keep leases of jobs that make progress; at most 100.
-- -> drain_state, epoch, then each id that is lost
function commands.renew(q)
  if not q.s then return { 'drain', '0' } end
  local g, worker, v = G.glance(q), q.v[3], q.v
  local list = { G.effective(g), digits(g.epoch) }
  for i = 4, #v, 2 do
    local id, job = v[i], J.read(q, v[i])
    if job and job.state == 'running' and digits(job.fence) == v[i + 1] then
      J.write(q, job, { lease_end = q.now + q.s.lease_ms })
      index(q, 'ZADD', q.p .. 'queue:leases', job.lease_end, id)
      if job.canary then index(q, 'ZADD', q.p .. 'running:canary', job.lease_end, id) end
    else
      list[#list + 1] = id
    end
  end
  put('ZADD', q.p .. 'workers', q.now, worker)
  put('HSET', q.p .. 'worker:' .. worker, 'seen', digits(q.now))
  redis.call('PEXPIRE', q.p .. 'worker:' .. worker, 60000)
  return list
end
hot.renew = true

-- hello {worker, version, report}: say that a worker lives; report is its last stop_pull report, if any.
-- -> {drain_state, epoch, digest, settings}
function commands.hello(q)
  local g = G.read(q)
  put('ZADD', q.p .. 'workers', q.now, q.a.worker)
  put('ZREMRANGEBYSCORE', q.p .. 'workers', '-inf', q.now - 60000)
  local key = q.p .. 'worker:' .. q.a.worker
  put('HSET', key, 'seen', digits(q.now), 'version', q.a.version or '')
  if q.a.report then redis.call('HSET', key, 'report', q.a.report) end
  redis.call('PEXPIRE', key, 60000)
  return { drain_state = G.effective(g), epoch = digits(g.epoch), digest = q.digest or '' }
end

-- goodbye {worker}: forget a worker that has stopped by itself.
function commands.goodbye(q)
  put('ZREM', q.p .. 'workers', q.a.worker)
  redis.call('DEL', q.p .. 'worker:' .. q.a.worker)
  return { answer = 'ok' }
end

-- workers {}: who was seen, which epoch each confirmed, and how many jobs each holds. Read-only.
-- -> {workers = [{id, seen_ms_ago, epoch, inflight, report}], epoch, leases}
function commands.workers(q)
  local inflight, rows = {}, {}
  for _, id in ipairs(redis.call('ZRANGE', q.p .. 'queue:leases', 0, 999)) do
    local worker = hash_of(J.key(q, id)).worker or ''
    inflight[worker] = (inflight[worker] or 0) + 1
  end
  local flat = rows_of('ZRANGE', q.p .. 'workers', 0, 999, 'WITHSCORES')
  for i = 1, #flat, 2 do
    local h = hash_of(q.p .. 'worker:' .. flat[i])
    rows[#rows + 1] = { id = flat[i], seen_ms_ago = q.now - tonumber(flat[i + 1]), epoch = whole_number(h.epoch) and h.epoch or '0',
      inflight = inflight[flat[i]] or 0, report = h.report or '' }
  end
  local epoch = text_of(q.p .. 'control:epoch')
  return { workers = rows, epoch = whole_number(epoch) and epoch or '0',
    leases = redis.call('ZCARD', q.p .. 'queue:leases') }
end
readonly.workers = true

-- Whether a job may start its call under this gate.
local function intended(q, g, id, worker, fence)
  local key = J.key(q, id)
  local job = rows_of('HMGET', key, 'state', 'fence', 'attempt', 'canary', 'window', 'confirmed')
  if job[1] ~= 'running' or job[2] ~= fence then return 'stale' end
  local gate, canary = G.effective(g), none(job[4] or nil)
  local pulls = gate == 'admit' or gate == 'reject_new' or (gate == 'recovering' and (g.green or canary))
  if not pulls or (canary and (job[5] ~= g.window or g.green)) then return 'stop' end
  redis.call('HSET', key, 'intent', digits(q.now), 'intent_worker', worker, 'intent_attempt', job[3], 'intent_fence', fence)
  if job[6] then redis.call('HDEL', key, 'confirmed', 'reference') end
  return 'go'
end

-- intent worker (id fence)*: record, before the first call of each, that a side effect may follow; re-checks gate and
-- fence; at most 100. -> drain_state, epoch, then for each: go | stop | stale
function commands.intent(q)
  local g, v = G.glance(q), q.v
  local list = { G.effective(g), digits(g.epoch) }
  for i = 4, #v, 2 do
    list[#list + 1] = q.s and intended(q, g, v[i], v[3], v[i + 1]) or 'stale'
  end
  return list
end
hot.intent = true

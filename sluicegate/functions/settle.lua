-- settle {worker, id, fence, request, outcome, delay_ms, call = {kind, status, latency_ms}, cause}: end a worker's hold on
-- a job. A repeat of the request id answers the same and counts once; an old fence is refused and logged.
-- -> {answer = ok | repeat | stale, state, event}

-- Requests that a job has seen, newest first, a line each: `answer request`. A few are enough: whoever repeats one does
-- so within seconds, but another worker may have settled the job meanwhile.
local REQUESTS_KEPT = 8

-- What the same request was answered, or nil.
local function answer_before(lines, request)
  for answer, known in string.gmatch(lines or '', '(%S+) ([^\n]*)') do
    if known == request then return answer end
  end
  return nil
end

local function with_request(lines, answer, request)
  local kept = { answer .. ' ' .. request }
  for line in string.gmatch(lines or '', '[^\n]+') do
    if #kept < REQUESTS_KEPT then kept[#kept + 1] = line end
  end
  return table.concat(kept, '\n')
end

-- A late write is a suspected duplicate; confirmed only for an unsafe job that has run again.
-- A repeat of its request id counts once, too.
local function stale(q, job)
  local answer = { answer = 'stale', state = job and job.state or 'gone' }
  if job then
    if answer_before(job.late, q.a.request) then return answer end
    redis.call('HSET', J.key(q, job.id), 'late', with_request(job.late, 'stale', q.a.request))
  end
  count(q, 'stale_writes')
  redis.call('XADD', q.p .. 'reconcile:log', 'MAXLEN', '~', '10000', '*', 'at', digits(q.now), 'kind', 'stale_write', 'job',
    q.a.id, 'fence', q.a.fence, 'current', job and digits(job.fence) or '', 'outcome', q.a.outcome, 'actor', q.a.worker)
  local class = job and q.s.classes[job.class]
  -- A restore gives a new fence too, and starts nothing.
  local ran_again = job and job.fence > (tonumber(q.a.fence) or 0) and job.restored_fence ~= digits(job.fence)
  if class and class.effects == 'unsafe' and ran_again and q.a.outcome == 'succeeded' then
    J.confirm_duplicate(q, job.key, 'unsafe job ' .. job.id .. ' succeeded under an old fence after it had run again')
  end
  return answer
end

function J.confirm_duplicate(q, key, note)
  G.count_duplicate(q, key, note)
  count(q, 'duplicates_confirmed')
  redis.call('XADD', q.p .. 'reconcile:log', 'MAXLEN', '~', '10000', '*', 'at', digits(q.now), 'kind', 'duplicate', 'key', key,
    'note', note)
end

local function settle_running(q, job)
  local outcome, delay = q.a.outcome, q.a.delay_ms or 0
  if outcome == 'succeeded' or outcome == 'failed' then
    J.finish(q, job, outcome, q.a.cause)
  elseif outcome == 'expired' then
    J.finish(q, job, 'expired', q.a.cause or 'worker')
  elseif outcome == 'unknown' then
    count(q, 'unknown')
    J.move(q, job, 'unknown', { cause = q.a.cause or 'ambiguous', worker = '' })
  elseif outcome == 'retry' then
    local retries = job.retries + 1
    count(q, 'retried')
    redis.call('HSET', J.key(q, job.id), 'retries', retries)
    if retries >= q.s.retry_budget then return J.block(q, job, 'retry_budget') end
    return J.again(q, job, delay)
  elseif outcome == 'not_executed' then
    return J.again(q, job, delay)
  else
    count(q, 'requeued')
    return J.again(q, job, 0, true)
  end
  return job.state
end

-- The late worker itself, with the current fence, resolves its own unknown: through a reconcile record.
local function settle_unknown(q, job)
  if q.a.outcome ~= 'succeeded' and q.a.outcome ~= 'failed' then return job.state end
  redis.call('XADD', q.p .. 'reconcile:log', 'MAXLEN', '~', '10000', '*', 'at', digits(q.now), 'kind', 'late_worker', 'job',
    job.id, 'key', job.key, 'outcome', q.a.outcome, 'actor', q.a.worker, 'note', 'settled with the current fence')
  J.finish(q, job, q.a.outcome, 'late_worker')
  return job.state
end

-- A canary passes only under the current window and within its class's latency.
local function settle_canary(q, job)
  local call, class = q.a.call or {}, q.s.classes[job.class]
  local quick = class and (call.latency_ms or math.huge) <= class.canary_max_latency_ms
  local passed = q.a.outcome == 'succeeded' and quick
  local cause = passed and '' or (q.a.outcome ~= 'succeeded' and (q.a.cause or q.a.outcome) or 'slow')
  J.finish(q, job, passed and 'succeeded' or 'failed', cause)
  G.canary_result(q, job, passed, cause)
  return job.state
end

-- Count a canary's result; at green the count freezes, waiting canaries are cancelled and the burn-down starts.
function G.canary_result(q, job, passed, cause)
  local g = G.read(q)
  if G.adopt(q, g) then g = G.read(q) end -- turning green is a move, and would write over a hand edit
  local counts = G.readable(g) and g.drain_state == 'recovering' and not g.green and G.recovery_live(g)
    and job.window == g.window and job.canary == g.run.id
  count(q, passed and 'canaries_ok' or 'canaries_failed')
  if g.run then
    R.journal(q, g.run.id, { seq = g.run.step, verb = g.run.verb, phase = 'canary', actor = job.worker or '', text = job.id
      .. (passed and ' passed' or ' failed: ' .. (cause or '')) .. (counts and '' or ' (not counted)') })
  end
  if not counts then return end
  g.canary_ok = passed and g.canary_ok + 1 or 0
  if not passed then g.canary_failed = g.canary_failed + 1 end
  if g.canary_ok < q.s.canaries_required then
    G.save(q, g)
    redis.call('SET', q.p .. 'canary_ok_count', digits(g.canary_ok))
    return
  end
  G.turn_green(q, g)
end

function G.turn_green(q, g)
  g.green = true
  g.limit_at = q.now + q.s.timings.burn_down_max_ms
  g.green_backlog = redis.call('ZCARD', q.p .. 'queue:deadlines')
  G.cancel_canaries(q)
  G.move(q, g, g.drain_state, { reason = 'canaries_green', actor = 'workers', note = digits(g.canary_ok) .. ' in a row' })
end

function commands.settle(q)
  if not q.s then return { answer = 'stale', state = 'gone' } end
  local job = J.read(q, q.a.id)
  local before = job and answer_before(job.settled, q.a.request)
  if before then return { answer = 'repeat', state = before } end
  if not job or digits(job.fence) ~= q.a.fence then return stale(q, job) end
  if job.state ~= 'running' and job.state ~= 'unknown' then return stale(q, job) end
  local call = q.a.call
  if call then F.count_call(q, job.window, call.kind) end
  local event = J.event(q, job)
  local was, state = job.state, nil
  -- Before the end, which gives the ledger its retention: without an intent this is what makes the entry.
  if q.a.outcome == 'succeeded' then
    redis.call('HSET', q.p .. 'ledger:' .. job.key, 'confirmed', digits(q.now), 'reference', q.a.reference or '')
  end
  if job.canary then
    state = settle_canary(q, job)
  elseif was == 'unknown' then
    state = settle_unknown(q, job)
  else
    state = settle_running(q, job)
  end
  if state == 'succeeded' and not job.canary then F.count_done(q, call and call.latency_ms or 0) end
  redis.call('HSET', J.key(q, job.id), 'settled', with_request(job.settled, state, q.a.request))
  return { answer = 'ok', state = state, event = event }
end

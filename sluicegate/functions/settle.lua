-- settle worker (id fence request outcome delay_ms kind latency_ms cause reference)*: end a worker's hold on jobs, each by
-- itself, at most 100 a call. kind is the call's ('' without a call), latency_ms '' where it is not known. A repeat of a
-- request id answers the same and counts once; an old fence is refused and logged.
-- -> for each: answer (ok | repeat | stale), state, class, attempt, slack_ms; class is '' where it is no job of the worker's

local SETTLE_FIELDS = 9

-- Requests that a job has seen, newest first, a line each: `answer request`. A few are enough: whoever repeats one does
-- so within seconds, but another worker may have settled the job meanwhile.
local REQUESTS_KEPT = 8

-- What the same request was answered, or nil.
local function answer_before(lines, request)
  if not lines then return nil end
  for answer, known in string.gmatch(lines, '(%S+) ([^\n]*)') do
    if known == request then return answer end
  end
  return nil
end

local function with_request(lines, answer, request)
  if not lines then return answer .. ' ' .. request end
  local kept = { answer .. ' ' .. request }
  for line in string.gmatch(lines, '[^\n]+') do
    if #kept < REQUESTS_KEPT then kept[#kept + 1] = line end
  end
  return table.concat(kept, '\n')
end

-- A late write is a suspected duplicate; confirmed only for an unsafe job that has run again, or once it has.
-- A repeat of its request id counts once, too.
local function stale(q, s, job)
  -- A restore gives a new fence too, and starts nothing.
  local ran_again = job and job.fence > (tonumber(s.fence) or 0) and job.restored_fence ~= digits(job.fence)
  local done = job and s.outcome == 'succeeded' and J.effects(q, job.class) == 'unsafe'
  if job then
    if answer_before(job.late, s.request) then return 'stale', job.state end
    local kept_as = done and not ran_again and 'succeeded' or 'stale'
    redis.call('HSET', J.key(q, job.id), 'late', with_request(job.late, kept_as, s.request))
  end
  count(q, 'stale_writes')
  put('XADD', q.p .. 'reconcile:log', 'MAXLEN', '~', '10000', '*', 'at', digits(q.now), 'kind', 'stale_write', 'job',
    s.id, 'fence', s.fence, 'current', job and digits(job.fence) or '', 'outcome', s.outcome, 'actor', s.worker)
  if done and ran_again then
    J.confirm_duplicate(q, job.id, 'unsafe job ' .. job.id .. ' succeeded under an old fence after it had run again')
  end
  return 'stale', job and job.state or 'gone'
end

function J.confirm_duplicate(q, key, note)
  G.count_duplicate(q, key, note)
  count(q, 'duplicates_confirmed')
  put('XADD', q.p .. 'reconcile:log', 'MAXLEN', '~', '10000', '*', 'at', digits(q.now), 'kind', 'duplicate', 'key', key,
    'note', note)
  A.write(q, 'duplicate', 'key', key, 'note', note)
end

-- Calls that broke off and may have done their work; sluicegate/job.py has the same.
local AMBIGUOUS = { timeout = true, dropped = true, cancelled = true }

local function settle_running(q, s, job)
  local outcome = s.outcome
  if outcome == 'succeeded' or outcome == 'failed' then
    J.finish(q, job, outcome, s.cause)
  elseif outcome == 'expired' then
    J.finish(q, job, 'expired', s.cause or 'worker')
  elseif outcome == 'unknown' then
    count(q, 'unknown')
    J.move(q, job, 'unknown', { cause = s.cause or 'ambiguous', worker = '' })
  elseif outcome == 'retry' then
    local retries = job.retries + 1
    count(q, 'retried')
    job.also.retries = retries
    if retries >= q.s.retry_budget then return J.block(q, job, 'retry_budget') end
    return J.again(q, job, s.delay, false, AMBIGUOUS[s.kind or ''])
  elseif outcome == 'not_executed' then
    return J.again(q, job, s.delay)
  else
    count(q, 'requeued')
    return J.again(q, job, 0, true, AMBIGUOUS[s.kind or ''])
  end
  return job.state
end

-- The late worker itself, with the current fence, resolves its own unknown: through a reconcile record.
local function settle_unknown(q, s, job)
  if s.outcome ~= 'succeeded' and s.outcome ~= 'failed' then
    redis.call('HSET', J.key(q, job.id), 'settled', job.settled_in(job.state))
    return job.state
  end
  put('XADD', q.p .. 'reconcile:log', 'MAXLEN', '~', '10000', '*', 'at', digits(q.now), 'kind', 'late_worker', 'job',
    job.id, 'key', job.id, 'outcome', s.outcome, 'actor', s.worker, 'note', 'settled with the current fence')
  count(q, 'unknown_reconciled')
  J.finish(q, job, s.outcome, 'late_worker')
  return job.state
end

-- A canary passes only under the current window and within its class's latency.
local function settle_canary(q, s, job)
  local class = q.s.classes[job.class]
  local quick = class and (s.latency or math.huge) <= class.canary_max_latency_ms
  local passed = s.outcome == 'succeeded' and quick
  local cause = passed and '' or (s.outcome ~= 'succeeded' and (s.cause or s.outcome) or 'slow')
  J.finish(q, job, passed and 'succeeded' or 'failed', cause)
  G.canary_result(q, job, passed, cause)
  return job.state
end

-- Count a canary's result; at green the count freezes, waiting canaries are cancelled and the burn-down starts.
function G.canary_result(q, job, passed, cause)
  write_indexes(q)
  local g = G.read(q)
  G.adopt(q, g) -- turning green is a move, and would write over a hand edit
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

-- Canaries that failed on the way are what the proof allows: after green only calls that start now speak of the provider.
function G.turn_green(q, g)
  g.green = true
  g.limit_at = q.now + q.s.timings.burn_down_max_ms
  g.green_backlog = F.unfinished(q)
  G.cancel_canaries(q)
  G.move(q, g, g.drain_state, { reason = 'canaries_green', actor = 'workers', note = digits(g.canary_ok) .. ' in a row',
    window = true })
end

local function settle_one(q, s)
  local job = J.read(q, s.id)
  local before = job and answer_before(job.settled, s.request)
  if before then return 'repeat', before end
  if not job or digits(job.fence) ~= s.fence then return stale(q, s, job) end
  if job.state ~= 'running' and job.state ~= 'unknown' then return stale(q, s, job) end
  if s.kind then F.count_call(q, job.window, s.kind) end
  -- Written with the end itself, so that the record has what it needs before it gets its retention.
  job.also = s.outcome == 'succeeded' and { confirmed = q.now, reference = s.reference } or {}
  job.settled_in = function(state) return with_request(job.settled, state, s.request) end
  local was, state = job.state, nil
  if job.canary then
    state = settle_canary(q, s, job)
  elseif was == 'unknown' then
    state = settle_unknown(q, s, job)
  else
    state = settle_running(q, s, job)
  end
  if state == 'succeeded' and string.find('\n' .. (job.late or ''), '\nsucceeded ', 1, true) then
    J.confirm_duplicate(q, job.id, 'unsafe job ' .. job.id .. ' succeeded after a success that came too late to count')
  end
  if state == 'succeeded' and not job.canary then
    local held_ms = was == 'running' and q.now - (tonumber(job.started_at) or q.now) or 0
    F.count_done(q, job.class, s.latency or 0, held_ms)
  end
  return 'ok', state, job
end

function commands.settle(q)
  local v, list = q.v, {}
  q.now_text = digits(q.now) -- J.finish writes it for every job of the call
  for i = 4, #v, SETTLE_FIELDS do
    local s = { worker = v[3], id = v[i], fence = v[i + 1], request = v[i + 2], outcome = v[i + 3],
      delay = tonumber(v[i + 4]) or 0, kind = none(v[i + 5]), latency = tonumber(v[i + 6]), cause = none(v[i + 7]),
      reference = none(v[i + 8]) }
    local answer, state, job = 'stale', 'gone', nil
    if q.s then answer, state, job = settle_one(q, s) end
    local n = #list
    list[n + 1], list[n + 2] = answer, state
    list[n + 3], list[n + 4], list[n + 5] = job and job.class or '', job and job.attempt or 0,
      job and job.deadline - q.now or 0
  end
  return list
end
hot.settle = true

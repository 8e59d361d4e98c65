-- Figures of one instant, by rank on the indexes: the same cost at any depth (SPEC §2). What is asked of several indexes
-- together, such as the ages of all pairs, is found without merging them.

local function sets_of(keys)
  local sets, total = {}, 0
  for _, key in ipairs(keys) do
    local n = redis.call('ZCARD', key)
    if n > 0 then
      sets[#sets + 1] = { key = key, n = n }
      total = total + n
    end
  end
  return sets, total
end

local function score_at(key, rank)
  local pair = redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')
  return tonumber(pair[2])
end

-- The rank-th smallest score (from 1) of several sets together. It lies between the lowest and the highest of their own
-- scores at that share of each; scores are whole ms, so halving finds it.
local function nth_score(sets, total, rank)
  local low, high
  for _, set in ipairs(sets) do
    local own = score_at(set.key, math.floor((rank * set.n + total - 1) / total) - 1)
    low, high = math.min(low or own, own), math.max(high or own, own)
  end
  while low < high do
    local middle, below = math.floor((low + high) / 2), 0
    for _, set in ipairs(sets) do below = below + redis.call('ZCOUNT', set.key, '-inf', digits(middle)) end
    if below >= rank then high = middle else low = middle + 1 end
  end
  return low
end

-- Nearest rank: the p-th percentile of n sorted values is number ceil(p n).
function F.age_ms(q, keys, share)
  local sets, total = sets_of(keys)
  if total == 0 then return 0 end
  -- Ages ascend as eligible-since descends.
  return math.max(0, q.now - nth_score(sets, total, total - math.ceil(share * total) + 1))
end

function F.oldest_at(keys)
  local oldest
  for _, key in ipairs(keys) do
    local since = score_at(key, 0)
    if since and (not oldest or since < oldest) then oldest = since end
  end
  return oldest
end

function F.slack_ms(q, keys, share)
  local sets, total = sets_of(keys)
  if total == 0 then return nil end
  return nth_score(sets, total, math.ceil(share * total)) - q.now
end

local function counted(keys)
  local n = 0
  for _, key in ipairs(keys) do n = n + redis.call('ZCARD', key) end
  return n
end

-- The indexes of the ready by eligible-since: of one class, or of all.
function F.ages(q, class)
  local keys = {}
  for _, pair in ipairs(J.pairs(q)) do
    if not class or pair.class == class then keys[#keys + 1] = q.p .. 'queue:fifo:' .. pair.name end
  end
  return keys
end

-- The indexes of the unfinished by deadline: of one class, or of all.
function F.deadlines(q, class)
  local keys, p = {}, q.p
  for _, pair in ipairs(J.pairs(q)) do
    if not class or pair.class == class then keys[#keys + 1] = p .. 'queue:ready:' .. pair.name end
  end
  for _, name in ipairs(class and { class } or J.classes(q)) do
    keys[#keys + 1] = p .. 'queue:delayed:' .. name
    keys[#keys + 1] = p .. 'running:' .. name
  end
  return keys
end

function F.backlog(q)
  return counted(F.ages(q))
end

function F.unfinished(q)
  return counted(F.deadlines(q))
end

local function doomed(q, keys)
  local n = 0
  for _, key in ipairs(keys) do n = n + redis.call('ZCOUNT', key, '-inf', digits(q.now + q.s.timings.margin_ms)) end
  return n
end

-- What the age rules go by. With earliest deadline first the long classes wait by design, so the shortest one speaks.
function F.ruling_ages(q)
  if q.s.dispatch ~= 'edf' then return F.ages(q) end
  local shortest
  for class, declared in pairs(q.s.classes) do
    local best = shortest and q.s.classes[shortest].deadline_ms
    if not best or declared.deadline_ms < best or (declared.deadline_ms == best and class < shortest) then shortest = class end
  end
  return F.ages(q, shortest)
end

local BUCKETS = 6

function F.bucket(q, ms)
  return math.floor((ms or q.now) * BUCKETS / q.s.timings.provider_window_ms)
end

-- The window of the last move into recovering; before the first one there is one without a name of its own.
function F.window(g)
  return g.window ~= '' and g.window or '0'
end

-- Calls that ended in the window; only those started under the current window count.
function F.provider(q, window)
  local calls, errors, timeouts = 0, 0, 0
  local newest = F.bucket(q)
  for bucket = newest - BUCKETS + 1, newest do
    local values = rows_of('HMGET', q.p .. 'provider:' .. window .. ':' .. bucket, 'calls', '5xx', 'timeout')
    calls = calls + (tonumber(values[1]) or 0)
    errors = errors + (tonumber(values[2]) or 0)
    timeouts = timeouts + (tonumber(values[3]) or 0)
  end
  return calls, errors, timeouts
end

-- What a class's calls take, in ms: by its last completions, however long ago those of a rare class were; what the
-- contract expects until there are enough.
function F.service_ms(q, class)
  local seen = rows_of('HMGET', q.p .. 'service', 'jobs:' .. class, 'ms:' .. class)
  local jobs, declared = whole_number(seen[1]) or 0, q.s.classes[class]
  if jobs < q.s.prediction_min_completions then
    return declared and declared.expected_service_ms or q.s.expected_service_ms
  end
  return (whole_number(seen[2]) or 0) / jobs
end

-- At so many times the completions that make a prediction, both sums are halved: the older ones fade.
local FADES_AT = 4

local function remember_service(q, class, service_ms)
  local key, jobs_name, ms_name = q.p .. 'service', 'jobs:' .. class, 'ms:' .. class
  local seen = put('HMGET', key, jobs_name, ms_name)
  local jobs, ms = (whole_number(seen[1]) or 0) + 1, (whole_number(seen[2]) or 0) + service_ms
  if jobs >= FADES_AT * q.s.prediction_min_completions then jobs, ms = jobs / 2, ms / 2 end
  put('HSET', key, jobs_name, digits(jobs), ms_name, digits(ms))
end

function F.completions(q)
  local done, newest = 0, F.bucket(q)
  for bucket = newest - BUCKETS + 1, newest do
    done = done + (tonumber(rows_of('HMGET', q.p .. 'done:' .. bucket, 'jobs')[1]) or 0)
  end
  return done
end

-- Predicted wait in ms: backlog ÷ completions per ms; 0 without a backlog, nil on too few completions.
function F.predicted_wait_ms(q, backlog)
  if backlog == 0 then return 0 end
  local done = F.completions(q)
  if done < q.s.prediction_min_completions then return nil end
  return backlog * q.s.timings.provider_window_ms / done
end

-- A count in a bucket of the window; the bucket goes two windows after its last one.
local function count_in_bucket(q, key, name, by)
  count_in(q, key, name, by)
  q.lifetimes[key] = 2 * q.s.timings.provider_window_ms
end

function F.count_call(q, window, kind)
  count(q, 'calls:' .. kind)
  if kind == 'cancelled' then return end
  local key = q.p .. 'provider:' .. window .. ':' .. F.bucket(q)
  count_in_bucket(q, key, 'calls')
  if kind == '5xx' or kind == 'timeout' then count_in_bucket(q, key, kind) end
end

function F.count_done(q, class, service_ms)
  local key = q.p .. 'done:' .. F.bucket(q)
  count_in_bucket(q, key, 'jobs')
  count_in_bucket(q, key, 'service_ms', service_ms)
  if q.s.backlog_limit > 0 then remember_service(q, class, service_ms) end
end

-- As `provider_breached` in policy.py: on too few calls, or too few failed ones, the rates say nothing.
local function provider_breached(q, g)
  local bounds = q.s.thresholds
  local calls, errors, timeouts = F.provider(q, F.window(g))
  local failed = errors + timeouts
  if failed < bounds.drain_min_failed then return false end
  if calls < bounds.sample_min_calls and failed < bounds.sample_min_failed then return false end
  return errors / calls >= bounds.drain_provider_5xx_rate or timeouts / calls >= bounds.drain_provider_timeout_rate
end

-- The run's gate (SPEC §7.7), of this instant: green is checked by the caller. A provider that fails again may not be
-- opened to between two looks of the controller: its failed jobs wait for their retry, so neither age nor slack tells.
function F.reopening_passes(q, g)
  local bounds = q.s.thresholds
  local age = F.age_ms(q, F.ruling_ages(q), 0.95)
  local slack = F.slack_ms(q, F.deadlines(q), 0.1)
  return age < bounds.recovered_age_p95_seconds * 1000
    and (slack == nil or slack > bounds.recovered_slack_p10_seconds * 1000)
    and not provider_breached(q, g)
end

-- A breach in the ramp, of this instant: rows 3 and 5 of the decision table. The controller rolls back for it.
function F.ramp_breached(q, g)
  local bounds = q.s.thresholds
  local slack = F.slack_ms(q, F.deadlines(q), 0.1)
  return F.age_ms(q, F.ruling_ages(q), 0.95) >= bounds.reject_age_p95_seconds * 1000
    or (slack ~= nil and slack < bounds.reject_slack_p10_seconds * 1000)
    or provider_breached(q, g)
end

local function class_figures(q, class, declared)
  local p, ages, deadlines = q.p, F.ages(q, class), F.deadlines(q, class)
  local oldest = F.oldest_at(ages)
  return {
    ready = counted(ages), running = redis.call('ZCARD', p .. 'running:' .. class),
    delayed = redis.call('ZCARD', p .. 'queue:delayed:' .. class),
    unknown = redis.call('ZCARD', p .. 'queue:unknown:' .. class),
    blocked = redis.call('ZCARD', p .. 'queue:blocked:' .. class),
    age_p95_ms = F.age_ms(q, ages, 0.95),
    oldest_ms = oldest and math.max(0, q.now - oldest) or 0,
    slack_p10_ms = F.slack_ms(q, deadlines, 0.1),
    doomed = doomed(q, deadlines),
    deadline_ms = declared and declared.deadline_ms or 0,
    counters = hash_of(p .. 'counters:' .. class),
  }
end

local function gate_figures(q, g)
  local decision = hash_of(q.p .. 'control:decision')
  return {
    drain_state = G.effective(g), readable = G.readable(g), initialised = g.stored ~= 'uninitialised',
    stored = g.stored, epoch = digits(g.epoch), reason = g.reason, actor = g.actor, since = g.since,
    rollback_reason = g.rollback_reason, pin = G.effective_pin(g), pin_note = g.pin_note, green = g.green,
    canary_ok = g.canary_ok, canary_failed = g.canary_failed, ramp = g.ramp, limit_at = g.limit_at,
    admitted_percent = q.s and G.admitted_percent(q, g) or 0, reopened_at = g.reopened_at,
    green_backlog = g.green_backlog, window = g.window,
    seen = whole_number(text_of(q.p .. 'control:seen')) or 0, duplicates = math.max(0, g.confirmed - g.acknowledged),
    raw_drain_state = g.raw_state, raw_admission = g.raw_admission,
    run = g.run and { id = g.run.id, runbook = g.run.runbook, state = g.run.state, verb = g.run.verb or '',
      step = whole_number(g.run.step) or 0 } or nil,
    decision = decision.action or '', decision_reason = decision.reason or '',
  }
end

-- Everything of one instant. Without settings there are no classes and no figures, only the gate.
function F.observe(q, g)
  local p = q.p
  write_counts(q)
  local body = { at = q.now, gate = gate_figures(q, g), digest = '', counters = hash_of(p .. 'counters') }
  body.kill = text_of(p .. 'kill') or ''
  if not q.s then return body end
  local deadlines = F.deadlines(q)
  body.digest = settings_digest
  body.age_p95_ms = F.age_ms(q, F.ruling_ages(q), 0.95)
  body.oldest_at = F.oldest_at(F.ages(q))
  body.slack_p10_ms = F.slack_ms(q, deadlines, 0.1)
  body.ready = F.backlog(q)
  body.delayed = redis.call('ZCARD', p .. 'queue:delayed')
  body.leases = redis.call('ZCARD', p .. 'queue:leases')
  body.running_canaries = redis.call('ZCARD', p .. 'running:canary')
  body.unknown = redis.call('ZCARD', p .. 'queue:unknown')
  body.oldest_unknown_at = score_at(p .. 'queue:unknown', 0)
  body.blocked = redis.call('ZCARD', p .. 'queue:blocked')
  body.canaries = redis.call('ZCARD', p .. 'queue:canary')
  body.inflight = redis.call('ZCOUNT', p .. 'queue:leases', '(' .. digits(q.now), '+inf')
  body.doomed = doomed(q, deadlines)
  body.completions = F.completions(q)
  body.predicted_wait_ms = F.predicted_wait_ms(q, body.ready)
  body.calls, body.errors, body.timeouts = F.provider(q, F.window(g))
  body.window_ms = q.s.timings.provider_window_ms
  body.canaries_required = q.s.canaries_required
  body.thresholds = q.s.thresholds
  body.snapshot_at = whole_number(text_of(p .. 'control:snapshot')) or 0
  body.classes = {}
  for class, declared in pairs(q.s.classes) do body.classes[class] = class_figures(q, class, declared) end
  if not q.s.strict_classes then body.classes.other = class_figures(q, 'other') end
  return body
end

-- Figures of one instant, by rank on the indexes: the same cost at any depth (SPEC §2).

-- Nearest rank: the p-th percentile of n sorted values is number ceil(p n).
local function score_at(key, rank)
  local pair = redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')
  return tonumber(pair[2])
end

function F.age_ms(q, key, share)
  local n = redis.call('ZCARD', key)
  if n == 0 then return 0 end
  -- Ages ascend as eligible-since descends, so the ceil(share n)-th smallest age is at rank n - ceil(share n).
  return math.max(0, q.now - score_at(key, n - math.ceil(share * n)))
end

function F.oldest_at(key)
  if redis.call('ZCARD', key) == 0 then return nil end
  return score_at(key, 0)
end

function F.slack_ms(q, key, share)
  local n = redis.call('ZCARD', key)
  if n == 0 then return nil end
  return score_at(key, math.ceil(share * n) - 1) - q.now
end

local BUCKETS = 6

function F.bucket(q, ms)
  return math.floor((ms or q.now) * BUCKETS / q.s.timings.provider_window_ms)
end

-- Calls that ended in the window; only those started under the current window count.
function F.provider(q, window)
  local calls, errors, timeouts = 0, 0, 0
  local newest = F.bucket(q)
  for bucket = newest - BUCKETS + 1, newest do
    local values = redis.call('HMGET', q.p .. 'provider:' .. window .. ':' .. bucket, 'calls', '5xx', 'timeout')
    calls = calls + (tonumber(values[1]) or 0)
    errors = errors + (tonumber(values[2]) or 0)
    timeouts = timeouts + (tonumber(values[3]) or 0)
  end
  return calls, errors, timeouts
end

function F.completions(q)
  local done, newest = 0, F.bucket(q)
  for bucket = newest - BUCKETS + 1, newest do
    done = done + (tonumber(redis.call('HGET', q.p .. 'done:' .. bucket, 'jobs')) or 0)
  end
  return done
end

-- Predicted wait in ms: backlog ÷ completions per ms; 0 without a backlog, nil on too few completions.
function F.predicted_wait_ms(q)
  local backlog = redis.call('ZCARD', q.p .. 'queue:enqueued')
  if backlog == 0 then return 0 end
  local done = F.completions(q)
  if done < q.s.prediction_min_completions then return nil end
  return backlog * q.s.timings.provider_window_ms / done
end

function F.count_call(q, window, kind)
  count(q, 'calls:' .. kind)
  if kind == 'cancelled' then return end
  local key = q.p .. 'provider:' .. window .. ':' .. F.bucket(q)
  redis.call('HINCRBY', key, 'calls', 1)
  if kind == '5xx' or kind == 'timeout' then redis.call('HINCRBY', key, kind, 1) end
  redis.call('PEXPIRE', key, digits(2 * q.s.timings.provider_window_ms))
end

function F.count_done(q, service_ms)
  local key = q.p .. 'done:' .. F.bucket(q)
  redis.call('HINCRBY', key, 'jobs', 1)
  redis.call('HINCRBY', key, 'service_ms', digits(service_ms))
  redis.call('PEXPIRE', key, digits(2 * q.s.timings.provider_window_ms))
end

-- The run's gate (SPEC §7.7), of this instant: green is checked by the caller.
function F.reopening_passes(q)
  local bounds = q.s.thresholds
  local age = F.age_ms(q, q.p .. 'queue:enqueued', 0.95)
  local slack = F.slack_ms(q, q.p .. 'queue:deadlines', 0.1)
  return age < bounds.recovered_age_p95_seconds * 1000
    and (slack == nil or slack > bounds.recovered_slack_p10_seconds * 1000)
end

local function class_figures(q, class, declared)
  local p = q.p
  local ready = redis.call('ZCARD', p .. 'queue:ready:' .. class)
  local running = redis.call('ZCARD', p .. 'running:' .. class)
  local unfinished = redis.call('ZCARD', p .. 'queue:deadlines:' .. class)
  local oldest = F.oldest_at(p .. 'queue:enqueued:' .. class)
  return {
    ready = ready, running = running, delayed = unfinished - ready - running,
    unknown = redis.call('ZCARD', p .. 'queue:unknown:' .. class),
    blocked = redis.call('ZCARD', p .. 'queue:blocked:' .. class),
    age_p95_ms = F.age_ms(q, p .. 'queue:enqueued:' .. class, 0.95),
    oldest_ms = oldest and math.max(0, q.now - oldest) or 0,
    slack_p10_ms = F.slack_ms(q, p .. 'queue:deadlines:' .. class, 0.1),
    doomed = redis.call('ZCOUNT', p .. 'queue:deadlines:' .. class, '-inf', q.now + q.s.timings.margin_ms),
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
  local body = { at = q.now, gate = gate_figures(q, g), digest = '', counters = hash_of(p .. 'counters') }
  body.kill = text_of(p .. 'kill') or ''
  if not q.s then return body end
  local oldest = F.oldest_at(p .. 'queue:enqueued')
  body.digest = settings_digest
  body.age_p95_ms = F.age_ms(q, p .. 'queue:enqueued', 0.95)
  body.oldest_at = oldest
  body.slack_p10_ms = F.slack_ms(q, p .. 'queue:deadlines', 0.1)
  body.ready = redis.call('ZCARD', p .. 'queue:enqueued')
  body.delayed = redis.call('ZCARD', p .. 'queue:delayed')
  body.leases = redis.call('ZCARD', p .. 'queue:leases')
  body.running_canaries = redis.call('ZCARD', p .. 'running:canary')
  body.unknown = redis.call('ZCARD', p .. 'queue:unknown')
  body.blocked = redis.call('ZCARD', p .. 'queue:blocked')
  body.canaries = redis.call('ZCARD', p .. 'queue:canary')
  body.inflight = redis.call('ZCOUNT', p .. 'queue:leases', '(' .. digits(q.now), '+inf')
  body.doomed = redis.call('ZCOUNT', p .. 'queue:deadlines', '-inf', q.now + q.s.timings.margin_ms)
  body.completions = F.completions(q)
  body.predicted_wait_ms = F.predicted_wait_ms(q)
  local window = g.window ~= '' and g.window or '0'
  body.calls, body.errors, body.timeouts = F.provider(q, window)
  body.window_ms = q.s.timings.provider_window_ms
  body.canaries_required = q.s.canaries_required
  body.thresholds = q.s.thresholds
  body.snapshot_at = whole_number(text_of(p .. 'control:snapshot')) or 0
  body.classes = {}
  for class, declared in pairs(q.s.classes) do body.classes[class] = class_figures(q, class, declared) end
  if not q.s.strict_classes then body.classes.other = class_figures(q, 'other') end
  return body
end

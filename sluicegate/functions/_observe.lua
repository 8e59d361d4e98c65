-- Everything the exporter shows of one queue, of one instant: by rank and by count on the indexes, so at the same cost at
-- any depth (contract §2).

-- A library has at most 200 local names, so those of this file end with it.
do

local AGE_SHARES, SLACK_SHARES = { 0.5, 0.95, 0.99 }, { 0.01, 0.1, 0.5 }
-- How far ahead of the clock a stamp may be: a clock that is set right goes back by less.
local AHEAD_MS = 1000

-- Bounds of the ages' distribution, in ms: the thresholds that decide, two under them and one over them.
local function age_bounds(q)
  local bounds = q.s.thresholds
  local recovered, drain = bounds.recovered_age_p95_seconds, bounds.drain_age_p95_seconds
  local list = { recovered / 3, recovered * 2 / 3, recovered, bounds.reject_age_p95_seconds, drain, 2 * drain }
  for i, seconds in ipairs(list) do list[i] = math.floor(seconds * 1000 + 0.5) end
  return list
end

-- How many of the ready are younger than each bound. One of exactly a bound is not: so it is for the decisions.
local function younger(q, sets, total, oldest, bounds)
  local counts = {}
  for i, bound in ipairs(bounds) do
    if not oldest or q.now - oldest < bound then
      counts[i] = total
    else
      counts[i] = 0
      for _, set in ipairs(sets) do
        counts[i] = counts[i] + redis.call('ZCOUNT', set.key, '(' .. digits(q.now - bound), '+inf')
      end
    end
  end
  return counts
end

-- Leases that have ended and that nobody has found yet, by class: as many as there are workers that died just now.
local function ended_by_class(q)
  local ended = {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', q.p .. 'queue:leases', '-inf', q.now, 'LIMIT', 0, 1000)) do
    for _, name in ipairs(J.classes(q)) do
      if redis.call('ZSCORE', q.p .. 'running:' .. name, id) then
        local class = q.s.classes[name] and name or OTHER
        ended[class] = (ended[class] or 0) + 1
      end
    end
  end
  return ended
end

-- Doomed: who can't be done in time any more. No job is started with less than the margin left, and a retry whose time
-- would leave less is never parked, it expires; one that runs may still be done until its deadline.
local function doomed(q, class, names, cards)
  local p = q.p
  local too_late = q.now + q.s.timings.margin_ms
  return below(ready_by_deadline(q, class), too_late, cards)
    + below(family(p .. 'queue:delayed:', names), too_late, cards) + below(family(p .. 'running:', names), q.now, cards)
end

local function class_figures(q, class, body, ended, cards)
  local p, declared, names = q.p, q.s.classes[class], classes_under(q, class)
  local ages, ready = sets_of(F.ages(q, class), cards)
  local deadlines, unfinished = sets_of(F.deadlines(q, class), cards)
  local oldest, running = oldest_of(ages), counted(family(p .. 'running:', names), cards)
  local delayed = counted(family(p .. 'queue:delayed:', names), cards)
  return {
    ready = ready, running = running, delayed = delayed,
    unknown = counted(family(p .. 'queue:unknown:', names), cards),
    blocked = counted(family(p .. 'queue:blocked:', names), cards),
    inflight = running - (ended[class] or 0),
    ages_ms = ages_at(q, ages, ready, AGE_SHARES), oldest_at = oldest,
    younger = younger(q, ages, ready, oldest, body.age_bounds),
    slacks_ms = slacks_at(q, deadlines, unfinished, SLACK_SHARES), doomed = doomed(q, class, names, cards),
    predicted_wait_ms = class_wait_ms(q, class, ready + delayed, body.predicted_wait_ms),
    deadline_ms = declared and declared.deadline_ms or nil,
  }
end

-- A container that lacks what its neighbour holds was damaged by hand, for both are written together. What is read from
-- it would look better than it is; what holds more than its neighbour only looks worse.
local function find_lost(q, body, cards)
  local lost, canaries = body.damaged, body.running_canaries
  for _, pair in ipairs(J.pairs(q)) do
    local ages = card(q.p .. 'queue:fifo:' .. pair.name, cards)
    local deadlines = card(q.p .. 'queue:ready:' .. pair.name, cards)
    if ages < deadlines then lost.ready = true elseif ages > deadlines then lost.deadlines = true end
  end
  local sums = { delayed = 0, running = 0, unknown = 0, blocked = 0 }
  for _, figures in pairs(body.classes) do
    for state in pairs(sums) do sums[state] = sums[state] + figures[state] end
  end
  for state, whole in pairs({ delayed = body.delayed, running = body.leases - canaries, unknown = body.unknown,
    blocked = body.blocked }) do
    if whole < sums[state] then lost[state] = true end
    if whole > sums[state] then lost[(state == 'delayed' or state == 'running') and 'deadlines' or state] = true end
  end
end

local function counters_of(body, key)
  local flat = redis.pcall('HGETALL', key)
  if flat.err then
    body.damaged.counters = true
    return {}
  end
  local map = {}
  for i = 1, #flat, 2 do map[flat[i]] = flat[i + 1] end
  return map
end

-- Instants that lie ahead were not written by this library: nothing happened then.
local function past(q, ms)
  return ms and ms <= q.now + AHEAD_MS and ms or 0
end

local function shown_run(q, run)
  return { id = run.id, runbook = run.runbook, state = run.state, verb = run.verb or '',
    step = whole_number(run.step) or 0, started_at = past(q, whole_number(run.started_at)) }
end

local function shown_besides(q)
  local shown = {}
  for _, run in ipairs(R.besides(q)) do shown[#shown + 1] = shown_run(q, run) end
  return shown
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
    seen = past(q, whole_number(text_of(q.p .. 'control:seen'))),
    duplicates = math.max(0, g.confirmed - g.acknowledged),
    raw_drain_state = g.raw_state, raw_admission = g.raw_admission,
    run = g.run and shown_run(q, g.run) or nil, besides = shown_besides(q),
    decision = decision.action or '', decision_reason = decision.reason or '',
  }
end

-- Everything of one instant. Without settings there are no classes and no figures, only the gate. `damaged` names the
-- parts that could not be read, or hold less than they must: what is read from them says nothing.
function F.observe(q, g)
  local p = q.p
  write_counts(q)
  local body = { at = q.now, gate = gate_figures(q, g), digest = '', damaged = {} }
  body.counters = counters_of(body, p .. 'counters')
  body.kill = text_of(p .. 'kill') or ''
  if not q.s then return body end
  local cards = {}
  local ages, ready = sets_of(F.ages(q), cards)
  local ruling, rules = ages, ready
  if q.s.dispatch == 'edf' then ruling, rules = sets_of(F.ruling_ages(q), cards) end
  local deadlines, unfinished = sets_of(F.deadlines(q), cards)
  local done = F.completions(q, body.damaged)
  body.digest, body.ready, body.completions = settings_digest, ready, done
  body.ages_ms, body.oldest_at = ages_at(q, ruling, rules, AGE_SHARES), oldest_of(ages)
  body.slacks_ms = slacks_at(q, deadlines, unfinished, SLACK_SHARES)
  body.delayed = redis.call('ZCARD', p .. 'queue:delayed')
  body.leases = redis.call('ZCARD', p .. 'queue:leases')
  body.inflight = redis.call('ZCOUNT', p .. 'queue:leases', '(' .. digits(q.now), '+inf')
  body.running_canaries = redis.call('ZCARD', p .. 'running:canary')
  body.unknown = redis.call('ZCARD', p .. 'queue:unknown')
  body.oldest_unknown_at = body.unknown > 0 and tonumber(score_text(p .. 'queue:unknown', 0)) or nil
  body.blocked = redis.call('ZCARD', p .. 'queue:blocked')
  body.canaries = redis.call('ZCARD', p .. 'queue:canary')
  body.ahead = 0
  for _, set in ipairs(ages) do
    body.ahead = body.ahead + redis.call('ZCOUNT', set.key, '(' .. digits(q.now + AHEAD_MS), '+inf')
  end
  if body.ahead > 0 then body.damaged.clock = true end
  body.predicted_wait_ms = predicted_wait_ms(q, ready, done)
  body.calls, body.errors, body.timeouts = F.provider(q, F.window(g), body.damaged)
  body.window_ms = q.s.timings.provider_window_ms
  body.canaries_required, body.thresholds, body.age_bounds = q.s.canaries_required, q.s.thresholds, age_bounds(q)
  body.snapshot_at = past(q, whole_number(text_of(p .. 'control:snapshot')))
  body.cost_classes = {}
  for name in pairs(q.s.cost_classes) do body.cost_classes[#body.cost_classes + 1] = name end
  local ended = body.inflight < body.leases and ended_by_class(q) or {}
  body.classes, body.doomed = {}, 0
  local function add(class)
    local figures = class_figures(q, class, body, ended, cards)
    figures.counters = counters_of(body, p .. 'counters:' .. class)
    body.classes[class], body.doomed = figures, body.doomed + figures.doomed
  end
  for class in pairs(q.s.classes) do add(class) end
  add(OTHER)
  find_lost(q, body, cards)
  return body
end

end

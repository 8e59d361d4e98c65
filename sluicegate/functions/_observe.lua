-- Everything the exporter shows of one queue, of one instant: by rank and by count on the indexes, so at the same cost at
-- any depth (contract §2). Redis is asked for as little as there is: nothing of a state that no job is in, and the ranks of
-- all classes together begin between those of the classes.
--
-- F.observe answers a flat list, as a hot command does, its lists flat as well; false for what is not there:
--   at, contract, gate, runs, kill, damaged, counters, queue, then for each class of the contract, and for `other`: class
--   contract  what only the settings say, a JSON object (contract_shown); '' without settings, and nothing after counters
--   gate      see gate_values
--   runs      the live run that holds the lock, or false, then those beside it: id, runbook, state, verb, started_at
--   damaged   names of parts that could not be read, or hold less than they must: what is read from them says nothing
--   counters  names and values, one after the other, as Redis gives them
--   queue     see queue_values; class: name, counters (a list of its own), then see class_values
-- Instants are ms; ages and slack are told as the scores that they are taken from, as Redis writes them.

-- A library has at most 200 local names, so those of this file end with it.
do

local AGE_SHARES, SLACK_SHARES = { 0.5, 0.95, 0.99 }, { 0.01, 0.1, 0.5 }
-- How far ahead of the clock a stamp may be: a clock that is set right goes back by less.
local AHEAD_MS = 1000
local STATES = { 'delayed', 'running', 'unknown', 'blocked' }

-- A number as a reply carries it without loss: as it is where it is whole.
local function told(number)
  return is_whole(number) and number or exact(number)
end

-- Bounds of the ages' distribution, in ms: the thresholds that decide, two under them and one over them.
local function age_bounds(q)
  local bounds = q.s.thresholds
  local recovered, drain = bounds.recovered_age_p95_seconds, bounds.drain_age_p95_seconds
  local list = { recovered / 3, recovered * 2 / 3, recovered, bounds.reject_age_p95_seconds, drain, 2 * drain }
  for i, seconds in ipairs(list) do list[i] = math.floor(seconds * 1000 + 0.5) end
  return list
end

-- What a reading says of the contract alone.
local function contract_shown(q)
  local costs, deadlines = {}, {}
  for name in pairs(q.s.cost_classes) do costs[#costs + 1] = name end
  for name, declared in pairs(q.s.classes) do deadlines[name] = declared.deadline_ms end
  return cjson.encode({ digest = q.digest, window_ms = q.s.timings.provider_window_ms, deadlines_ms = deadlines,
    canaries_required = q.s.canaries_required, thresholds = q.s.thresholds, age_bounds = age_bounds(q),
    cost_classes = costs })
end

-- The keys of one class, or of the classes that count as `other`, and of the whole of each state beside them.
local function class_layout(q, class, layout)
  local p, own = q.p, { class = class, counters = q.p .. 'counters:' .. class, pairs = {}, parts = {} }
  local names = { class }
  if not q.s.classes[class] then
    names = {}
    for _, name in ipairs(J.classes(q)) do
      if not q.s.classes[name] then names[#names + 1] = name end
    end
  end
  for _, pair in ipairs(J.pairs(q)) do
    if counts_under(q, pair.class, class) then
      own.pairs[#own.pairs + 1] = { fifo = p .. 'queue:fifo:' .. pair.name, ready = p .. 'queue:ready:' .. pair.name }
    end
  end
  local prefixes = { delayed = p .. 'queue:delayed:', running = p .. 'running:', unknown = p .. 'queue:unknown:',
    blocked = p .. 'queue:blocked:' }
  for state, prefix in pairs(prefixes) do
    own.parts[state] = {}
    for i, name in ipairs(names) do
      own.parts[state][i] = prefix .. name
      table.insert(layout.keys[state], prefix .. name)
    end
  end
  layout.classes[#layout.classes + 1] = own
end

-- Where the figures of a queue are: as long as its contract and its pairs stay the same, so does this.
local layouts_kept = { by = {}, n = 0 }

local function layout_of(q)
  local p, names = q.p, rows_of('SMEMBERS', q.p .. 'queue:pairs')
  local listed = table.concat(names, ' ')
  local known = layouts_kept.by[p]
  if known and known.settings == q.s and known.listed == listed then return known end
  local layout = { settings = q.s, listed = listed, contract = contract_shown(q), bounds = age_bounds(q), classes = {},
    keys = { delayed = { p .. 'queue:delayed' }, running = { p .. 'queue:leases', p .. 'running:canary' },
      unknown = { p .. 'queue:unknown' }, blocked = { p .. 'queue:blocked' } } }
  for class in pairs(q.s.classes) do class_layout(q, class, layout) end
  class_layout(q, OTHER, layout)
  layout.ruling = ruling_class(q)
  -- Those of a queue that has lost its list of pairs may be others at the next reading.
  return #names == 0 and layout or keep(layouts_kept, p, layout)
end

-- How many jobs each state holds, in all and by key; of those that no job is in, one call says so.
local function count_states(layout)
  local states = {}
  for _, state in ipairs(STATES) do
    local keys = layout.keys[state]
    local counts = { whole = 0, canaries = 0, empty = redis.call('EXISTS', unpack(keys)) == 0 }
    if not counts.empty then
      for _, key in ipairs(keys) do counts[key] = redis.call('ZCARD', key) end
      counts.whole = counts[keys[1]]
      if state == 'running' then counts.canaries = counts[keys[2]] end
    end
    states[state] = counts
  end
  return states
end

-- How many jobs of a class are in a state; where `sets` is given, the class's sets are added to it.
local function in_state(counts, keys, sets)
  if counts.empty then return 0 end
  local total = 0
  for _, key in ipairs(keys) do
    local n = counts[key]
    if n > 0 and sets then sets[#sets + 1] = load_few({ key = key, n = n }) end
    total = total + n
  end
  return total
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

local function below(sets, bound)
  local n = 0
  for _, set in ipairs(sets) do
    -- The least says whether there is anything to count, and where the ranks of all classes begin.
    if first_score(set) < bound then n = n + counted_up_to(set, bound, false) end
  end
  return n
end

-- The scores at some ranks of some sets; `enclosing` are those at the same shares of the parts that the sets are joined
-- from. Where fewer than a share of each part is below the least of theirs, fewer than that share of all is; and at least
-- that share of all is not above the greatest.
local function scores_at(sets, total, shares, rank_by, enclosing)
  local scores = {}
  for i, share in ipairs(shares) do
    local least, most
    for _, part in ipairs(enclosing or {}) do
      local score = part[i]
      if score then
        least, most = math.min(score, least or score), math.max(score, most or score)
      end
    end
    scores[i] = total > 0 and nth_score(sets, rank_by(total, share), least, most)
  end
  return scores
end

-- How many of the ready are younger than each bound, the greatest first: under one that none is younger than there is
-- nothing to count. One of exactly a bound is not: so it is for the decisions.
local function younger(q, read, bounds)
  local counts = {}
  for i = #bounds, 1, -1 do
    local since = q.now - bounds[i]
    if not read.oldest or read.youngest <= since then
      counts[i] = 0
    elseif read.oldest > since then
      counts[i] = read.ready
    else
      counts[i] = read.ready
      for _, set in ipairs(read.ages) do counts[i] = counts[i] - counted_up_to(set, since, true) end
    end
  end
  return counts
end

-- The ready of a class by age: the oldest, the youngest, those between, and who is ahead of the clock.
local function read_ages(q, read, bounds)
  for _, set in ipairs(read.ages) do
    local first, last = first_score(set), last_score(set)
    if not read.oldest or first < read.oldest then read.oldest = first end
    if not read.youngest or last > read.youngest then read.youngest = last end
  end
  read.since = scores_at(read.ages, read.ready, AGE_SHARES, rank_by_since)
  read.younger = younger(q, read, bounds)
  if read.youngest and read.youngest > q.now + AHEAD_MS then
    read.ahead = read.ready
    for _, set in ipairs(read.ages) do read.ahead = read.ahead - counted_up_to(set, q.now + AHEAD_MS, true) end
  end
end

-- The ready of a class, in both their indexes.
local function read_ready(own, read, damaged)
  for _, pair in ipairs(own.pairs) do
    local n, due = redis.call('ZCARD', pair.fifo), redis.call('ZCARD', pair.ready)
    -- What is read from a container that lacks what its neighbour holds would look better than it is.
    if n < due then damaged.ready = true elseif n > due then damaged.deadlines = true end
    if n > 0 then read.ages[#read.ages + 1] = load_few({ key = pair.fifo, n = n }) end
    if due > 0 then read.deadlines[#read.deadlines + 1] = load_few({ key = pair.ready, n = due }) end
    read.ready, read.unfinished = read.ready + n, read.unfinished + due
  end
end

-- The figures of one class, and its sets for those of all. Doomed is who can't be done in time any more: no job is started
-- with less than the margin left, and a retry whose time would leave less is never parked, it expires; one that runs may
-- still be done until its deadline.
local function read_class(q, layout, own, states, damaged)
  local read = { class = own.class, ages = {}, ready = 0, oldest = false, youngest = false, since = false, younger = false,
    ahead = 0, deadlines = {}, unfinished = 0, due = false, doomed = 0, delayed = 0, running = 0,
    unknown = in_state(states.unknown, own.parts.unknown), blocked = in_state(states.blocked, own.parts.blocked) }
  read_ready(own, read, damaged)
  read_ages(q, read, layout.bounds)
  read.delayed = in_state(states.delayed, own.parts.delayed, read.deadlines)
  read.doomed = below(read.deadlines, q.now + q.s.timings.margin_ms)
  local running = {}
  read.running = in_state(states.running, own.parts.running, running)
  read.doomed = read.doomed + below(running, q.now)
  for _, set in ipairs(running) do table.insert(read.deadlines, set) end
  read.unfinished = read.unfinished + read.delayed + read.running
  read.due = scores_at(read.deadlines, read.unfinished, SLACK_SHARES, rank_by_deadline)
  return read
end

-- A container of a state that lacks what those of its classes hold was damaged by hand, for both are written together;
-- one that holds more than they do only looks worse, and they lack something.
local function find_lost(states, classes, lost)
  for _, state in ipairs(STATES) do
    local whole, sum = states[state].whole - states[state].canaries, 0
    for _, read in ipairs(classes) do sum = sum + read[state] end
    if whole < sum then lost[state] = true end
    if whole > sum then lost[(state == 'delayed' or state == 'running') and 'deadlines' or state] = true end
  end
end

local function counters_of(damaged, key)
  local flat = redis.pcall('HGETALL', key)
  if flat.err then
    damaged.counters = true
    return {}
  end
  return flat
end

-- Instants that lie ahead were not written by this library: nothing happened then.
local function past(q, ms)
  return ms and ms <= q.now + AHEAD_MS and ms or 0
end

local function flag(truth)
  return truth and 1 or 0
end

-- drain_state, readable, initialised, epoch, reason, actor, since, rollback_reason, pin, pin_note, green, canary_ok,
-- canary_failed, ramp, limit_at, admitted_percent, controller seen, duplicates, raw drain_state, raw admission, decision,
-- reason of the decision
local function gate_values(q, g)
  local decision = rows_of('HMGET', q.p .. 'control:decision', 'action', 'reason')
  return { G.effective(g), flag(G.readable(g)), flag(g.stored ~= 'uninitialised'), digits(g.epoch), g.reason, g.actor,
    g.since, g.rollback_reason or false, G.effective_pin(g) or false, g.pin_note, flag(g.green), g.canary_ok,
    g.canary_failed, g.ramp or false, g.limit_at, q.s and G.admitted_percent(q, g) or 0, past(q, g.seen),
    math.max(0, g.confirmed - g.acknowledged), g.raw_state or false, g.raw_admission or false, decision[1] or '',
    decision[2] or '' }
end

local function run_values(q, run)
  return { run.id, run.runbook, run.state, run.verb or '', past(q, whole_number(run.started_at)) }
end

local function runs_values(q, g)
  local values = { g.run and run_values(q, g.run) or false }
  for _, run in ipairs(R.besides(q)) do values[#values + 1] = run_values(q, run) end
  return values
end

-- The scores of a list.
local function add_told(values, scores)
  for _, score in ipairs(scores) do values[#values + 1] = score and told(score) end
end

-- name, counters, ready, delayed, running, unknown, blocked, inflight, doomed, predicted wait in ms, oldest, since at age
-- p50, p95 and p99, deadline at slack p1, p10 and p50, then how many are younger than each bound
local function class_values(q, read, counters, ended, whole_wait)
  local waits = class_wait_ms(q, read.class, read.ready + read.delayed, whole_wait)
  local values = { read.class, counters, read.ready, read.delayed, read.running, read.unknown, read.blocked,
    read.running - (ended[read.class] or 0), read.doomed, waits and told(waits) or false,
    read.oldest and told(read.oldest) }
  add_told(values, read.since)
  add_told(values, read.due)
  for _, count in ipairs(read.younger) do values[#values + 1] = count end
  return values
end

-- What is asked of all classes together.
local function read_whole(q, layout, classes)
  local whole = { ages = {}, deadlines = {}, ready = 0, unfinished = 0, doomed = 0, ahead = 0, oldest = false }
  local since, due, ruling = {}, {}, nil
  for i, read in ipairs(classes) do
    for _, set in ipairs(read.ages) do table.insert(whole.ages, set) end
    for _, set in ipairs(read.deadlines) do table.insert(whole.deadlines, set) end
    whole.ready, whole.unfinished = whole.ready + read.ready, whole.unfinished + read.unfinished
    whole.doomed, whole.ahead = whole.doomed + read.doomed, whole.ahead + read.ahead
    if read.oldest then whole.oldest = math.min(read.oldest, whole.oldest or read.oldest) end
    since[i], due[i] = read.since, read.due
    if read.class == layout.ruling then ruling = read end
  end
  whole.since = ruling and ruling.since
    or scores_at(whole.ages, whole.ready, AGE_SHARES, rank_by_since, since)
  whole.due = scores_at(whole.deadlines, whole.unfinished, SLACK_SHARES, rank_by_deadline, due)
  return whole
end

-- ready, delayed, leases, canaries that run, canaries that wait, unknown, blocked, inflight, doomed, completions, calls,
-- errors, timeouts, predicted wait in ms, jobs ahead of the clock, oldest unknown since, snapshot at, oldest, since at age
-- p50, p95 and p99, deadline at slack p1, p10 and p50
local function queue_values(q, whole, states, window, snapshot_at)
  local p, unknown = q.p, states.unknown.whole
  local values = { whole.ready, states.delayed.whole, states.running.whole, states.running.canaries,
    redis.call('ZCARD', p .. 'queue:canary'), unknown, states.blocked.whole, window.inflight, whole.doomed, window.done,
    window.calls, window.errors, window.timeouts, window.wait and told(window.wait) or false, whole.ahead,
    unknown > 0 and score_text(p .. 'queue:unknown', 0), past(q, whole_number(snapshot_at)),
    whole.oldest and told(whole.oldest) }
  add_told(values, whole.since)
  add_told(values, whole.due)
  return values
end

-- Calls and completions of the window, and what is predicted from them; damage is noted.
local function read_window(q, g, ready, leases, damaged)
  local window = { inflight = 0, done = 0, calls = 0, errors = 0, timeouts = 0, wait = nil }
  if not F.window_is_empty(q, F.window(g)) then
    window.done = F.completions(q, damaged)
    window.calls, window.errors, window.timeouts = F.provider(q, F.window(g), damaged)
  end
  window.wait = predicted_wait_ms(q, ready, window.done)
  if leases > 0 then
    window.inflight = redis.call('ZCOUNT', q.p .. 'queue:leases', '(' .. digits(q.now), '+inf')
  end
  return window
end

local function names_of(damaged)
  local names = {}
  for name in pairs(damaged) do names[#names + 1] = name end
  return names
end

function F.observe(q, g)
  local p, damaged = q.p, {}
  write_indexes(q)
  write_counts(q)
  local counters = counters_of(damaged, p .. 'counters')
  local said = redis.call('MGET', p .. 'kill', p .. 'control:snapshot')
  local kill, snapshot_at = said[1] or '', said[2]
  if not q.s then
    return { q.now, '', gate_values(q, g), runs_values(q, g), kill, names_of(damaged), counters }
  end
  local layout = layout_of(q)
  local states, classes = count_states(layout), {}
  for i, own in ipairs(layout.classes) do classes[i] = read_class(q, layout, own, states, damaged) end
  find_lost(states, classes, damaged)
  local whole = read_whole(q, layout, classes)
  if whole.ahead > 0 then damaged.clock = true end
  local leases = states.running.whole
  local window = read_window(q, g, whole.ready, leases, damaged)
  local ended = window.inflight < leases and ended_by_class(q) or {}
  local of_queue = queue_values(q, whole, states, window, snapshot_at)
  local answer = { q.now, layout.contract, gate_values(q, g), runs_values(q, g), kill, false, counters, of_queue }
  for i, own in ipairs(layout.classes) do
    answer[8 + i] = class_values(q, classes[i], counters_of(damaged, own.counters), ended, window.wait)
  end
  answer[6] = names_of(damaged)
  return answer
end

end

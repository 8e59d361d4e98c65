-- What the controller, the run's gate and admission go by: ages, slack, the provider's window, the predicted wait
-- (contract §2). What is asked of several indexes together, such as the ages of all pairs, is found without merging them.

-- Nearest rank: the p-th percentile of n sorted values is number ceil(p n). Ages ascend as eligible-since descends.
local function rank_by_since(total, share)
  return total - math.ceil(share * total) + 1
end

local function rank_by_deadline(total, share)
  return math.ceil(share * total)
end

-- An age from the future is 0.
function F.age_ms(q, keys, share)
  local sets, total = sets_of(keys)
  if total == 0 then return 0 end
  return math.max(0, q.now - nth_score(sets, rank_by_since(total, share)))
end

function F.slack_ms(q, keys, share)
  local sets, total = sets_of(keys)
  if total == 0 then return nil end
  return nth_score(sets, rank_by_deadline(total, share)) - q.now
end

local function counted(keys)
  local n = 0
  for _, key in ipairs(keys) do n = n + redis.call('ZCARD', key) end
  return n
end

-- The class a job counts under: its own where the contract declares it, else `other`.
local function counts_under(q, class, wanted)
  if not wanted then return true end
  return (q.s.classes[class] and class or OTHER) == wanted
end

-- The indexes of the ready by eligible-since: of one class, or of all.
function F.ages(q, class)
  local keys = {}
  for _, pair in ipairs(J.pairs(q)) do
    if counts_under(q, pair.class, class) then keys[#keys + 1] = q.p .. 'queue:fifo:' .. pair.name end
  end
  return keys
end

-- The indexes of the unfinished by deadline.
function F.deadlines(q)
  local keys = {}
  for _, pair in ipairs(J.pairs(q)) do keys[#keys + 1] = q.p .. 'queue:ready:' .. pair.name end
  for _, name in ipairs(J.classes(q)) do
    keys[#keys + 1] = q.p .. 'queue:delayed:' .. name
    keys[#keys + 1] = q.p .. 'running:' .. name
  end
  return keys
end

function F.backlog(q)
  return counted(F.ages(q))
end

function F.unfinished(q)
  return counted(F.deadlines(q))
end

-- What the age rules go by. With earliest deadline first the long classes wait by design, so the shortest one speaks; all of
-- them (nil) otherwise.
local function ruling_class(q)
  if q.s.dispatch ~= 'edf' then return nil end
  local shortest
  for class, declared in pairs(q.s.classes) do
    local best = shortest and q.s.classes[shortest].deadline_ms
    if not best or declared.deadline_ms < best or (declared.deadline_ms == best and class < shortest) then shortest = class end
  end
  return shortest
end

function F.ruling_ages(q)
  return F.ages(q, ruling_class(q))
end

local BUCKETS = 6

function F.bucket(q, ms)
  return math.floor((ms or q.now) * BUCKETS / q.s.timings.provider_window_ms)
end

-- The window of the last move into recovering; before the first one there is one without a name of its own.
function F.window(g)
  return g.window ~= '' and g.window or '0'
end

-- The numbers of one bucket of the window, 0 for one that is not there. What is none, because somebody wrote over it,
-- is 0 as well and named in `damaged`, where a reader gives one: it was not counted, so it must not be shown.
local function in_bucket(damaged, part, key, ...)
  local values = redis.pcall('HMGET', key, ...)
  for i = 1, select('#', ...) do
    local text = not values.err and values[i] or '0'
    local number = whole_number(text)
    if damaged and (values.err or not number) then damaged[part] = true end
    values[i] = number or 0
  end
  return unpack(values, 1, select('#', ...))
end

-- Calls that ended in the window; only those started under the current window count.
function F.provider(q, window, damaged)
  local calls, errors, timeouts = 0, 0, 0
  local newest = F.bucket(q)
  for bucket = newest - BUCKETS + 1, newest do
    local key = q.p .. 'provider:' .. window .. ':' .. bucket
    local ended, failed, late = in_bucket(damaged, 'provider', key, 'calls', '5xx', 'timeout')
    if damaged and failed + late > ended then damaged.provider = true end -- more failures than calls: written over
    calls, errors, timeouts = calls + ended, errors + failed, timeouts + late
  end
  return calls, errors, timeouts
end

-- How long a job of a class keeps its slot, in ms: by its last completions, however long ago those of a rare class were; what the
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

function F.completions(q, damaged)
  local done, newest = 0, F.bucket(q)
  for bucket = newest - BUCKETS + 1, newest do
    done = done + in_bucket(damaged, 'completions', q.p .. 'done:' .. bucket, 'jobs')
  end
  return done
end

-- Whether there is not one bucket of the window: one call in the place of one a bucket.
function F.window_is_empty(q, window)
  local keys, newest = {}, F.bucket(q)
  for bucket = newest - BUCKETS + 1, newest do
    keys[#keys + 1] = q.p .. 'provider:' .. window .. ':' .. bucket
    keys[#keys + 1] = q.p .. 'done:' .. bucket
  end
  return redis.call('EXISTS', unpack(keys)) == 0
end

-- Predicted wait in ms: backlog ÷ completions per ms; 0 without a backlog, nil on too few completions.
local function predicted_wait_ms(q, backlog, done)
  if backlog == 0 then return 0 end
  if done < q.s.prediction_min_completions then return nil end
  return backlog * q.s.timings.provider_window_ms / done
end

-- The wait that admission holds against the deadline of a job of a class: that of the whole queue or, where the contract
-- limits backlogs by class, that of its own jobs at its share of the workers.
local function class_wait_ms(q, class, waiting, whole_ms)
  local declared = q.s.classes[class]
  if q.s.backlog_limit <= 0 then return whole_ms end
  if not declared then return nil end
  return waiting * F.service_ms(q, class) / (q.s.max_running * declared.share)
end

-- A count in a bucket of the window; the bucket goes two windows after its last one.
local function count_in_bucket(q, key, name, by)
  count_in(q, key, name, by)
  q.lifetimes[key] = 2 * q.s.timings.provider_window_ms
end

-- Of many settlements in one call the names of the buckets are the same.
function F.count_call(q, window, kind)
  count(q, 'calls:' .. kind)
  if kind == 'cancelled' then return end
  q.provider_keys = q.provider_keys or {}
  local key = q.provider_keys[window]
  if not key then
    key = q.p .. 'provider:' .. window .. ':' .. F.bucket(q)
    q.provider_keys[window] = key
  end
  count_in_bucket(q, key, 'calls')
  if kind == '5xx' or kind == 'timeout' then count_in_bucket(q, key, kind) end
end

-- held_ms: how long the job kept its slot, from its claim on.
function F.count_done(q, class, service_ms, held_ms)
  q.done_key = q.done_key or q.p .. 'done:' .. F.bucket(q)
  local key = q.done_key
  count_in_bucket(q, key, 'jobs')
  count_in_bucket(q, key, 'service_ms', service_ms)
  if q.s.backlog_limit > 0 then remember_service(q, class, math.max(service_ms, held_ms)) end
end

-- As `provider_breached` in policy.py: on too few calls, or too few failed ones, the rates say nothing. Counts that
-- somebody wrote over allow nothing.
local function rates_allow(q, g)
  local bounds, damaged = q.s.thresholds, {}
  local calls, errors, timeouts = F.provider(q, F.window(g), damaged)
  if damaged.provider then return false end
  local failed = errors + timeouts
  if failed < bounds.drain_min_failed then return true end
  if calls < bounds.sample_min_calls and failed < bounds.sample_min_failed then return true end
  return errors / calls < bounds.drain_provider_5xx_rate and timeouts / calls < bounds.drain_provider_timeout_rate
end

-- The run's gate (contract §7.7), of this instant: green is checked by the caller. A provider that fails again may not be
-- opened to between two looks of the controller: its failed jobs wait for their retry, so neither age nor slack tells.
function F.reopening_passes(q, g)
  local bounds = q.s.thresholds
  local age = F.age_ms(q, F.ruling_ages(q), 0.95)
  local slack = F.slack_ms(q, F.deadlines(q), 0.1)
  return age < bounds.recovered_age_p95_seconds * 1000
    and (slack == nil or slack > bounds.recovered_slack_p10_seconds * 1000)
    and rates_allow(q, g)
end

-- No breach in the ramp, of this instant: neither row 3 nor row 5 of the decision table. The controller rolls back for one.
function F.ramp_passes(q, g)
  local bounds = q.s.thresholds
  local slack = F.slack_ms(q, F.deadlines(q), 0.1)
  return F.age_ms(q, F.ruling_ages(q), 0.95) < bounds.reject_age_p95_seconds * 1000
    and (slack == nil or slack >= bounds.reject_slack_p10_seconds * 1000)
    and rates_allow(q, g)
end

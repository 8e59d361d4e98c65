-- admit (id, class, cost_class, deadline_ms, deadline_in_ms, fp, payload)*: decide, store the decision, enqueue; atomic
-- for each job. The rules run in one fixed order (SPEC §5). At most 100 jobs a call. The id is the idempotency key. A
-- deadline is an instant (deadline_ms) or a time from now (deadline_in_ms); with both 0 it is the class's.
-- -> epoch, then for each job: verdict, reason, retry_after_ms; the verdict is 1 accepted, 0 refused, + 2 where it was
-- stored before; the wait is -1 where coming back never helps. Without stored settings the epoch alone, "0".

local FIELDS = 7

local function refuse(q, job, reason, retry_ms)
  local key = J.key(q, job.id)
  local retry_at = digits(retry_ms and q.now + retry_ms or 0)
  redis.call('HSET', key, 'state', 'refused', 'fp', job.fp, 'reason', reason, 'retry_at', retry_at, 'decided_at',
    digits(q.now))
  local kept_ms = (retry_ms or 0) + q.s.timings.refusal_retention_ms
  redis.call('PEXPIRE', key, digits(kept_ms))
  -- By when its record goes, not by when it comes due: a final refusal never comes due, and stands all the same.
  index(q, 'ZADD', q.p .. 'queue:refusals', q.now + kept_ms, job.id)
  count(q, 'refused:' .. reason)
  return 0, reason, retry_ms or -1
end

local function in_ramp_share(key, percent)
  return tonumber(string.sub(redis.sha1hex(key), 1, 8), 16) % 100 < percent
end

-- Why the gate refuses everybody, or nil.
local function closed(q, g)
  if not G.readable(g) or G.effective(g) ~= 'admit' then return 'admission_closed' end
  if G.silent(q, g) then return 'controller_silent' end
  return nil
end

-- What there is at the beginning of the call; each acceptance adds to it. Pending counts delayed.
local function load_of(q)
  if q.load then return q.load end
  local p, load = q.p, { of_class = {}, of_cost = {}, ready = 0 }
  for _, pair in ipairs(J.pairs(q)) do
    local ready = redis.call('ZCARD', p .. 'queue:fifo:' .. pair.name)
    load.ready = load.ready + ready
    load.of_class[pair.class] = (load.of_class[pair.class] or 0) + ready
    load.of_cost[pair.cost] = (load.of_cost[pair.cost] or 0) + ready
  end
  load.delayed = redis.call('ZCARD', p .. 'queue:delayed')
  load.running = redis.call('ZCARD', p .. 'queue:leases') - redis.call('ZCARD', p .. 'running:canary')
  load.delayed_of = {}
  q.load = load
  return load
end

-- The delayed of a class, or of a cost class as `cost:{cost_class}`.
local function delayed_of(q, load, name)
  if load.delayed == 0 then return 0 end
  load.delayed_of[name] = load.delayed_of[name] or redis.call('ZCARD', q.p .. 'queue:delayed:' .. name)
  return load.delayed_of[name]
end

local function over(limit, counted)
  return limit and limit > 0 and counted >= limit
end

-- Predicted wait against what is left. No wait can be longer than that at the fewest completions that count, so the
-- completions are read only where that would be too long.
local function unreachable(q, load, left)
  if left <= 0 then return true end
  if load.ready * q.s.timings.provider_window_ms <= left * q.s.prediction_min_completions then return false end
  if not load.done then load.done = F.completions(q) end
  if load.done < q.s.prediction_min_completions then return false end
  return load.ready * q.s.timings.provider_window_ms / load.done > left
end

local function capacity_refusal(q, job, class, cost)
  local timings, load = q.s.timings, load_of(q)
  local pending = load.ready + load.delayed
  if pending >= q.s.max_pending or pending + load.running >= q.s.max_pending + q.s.max_running then
    return 'overloaded', timings.overloaded_retry_ms
  end
  local declared, costly = q.s.classes[class], q.s.cost_classes[cost]
  if declared and declared.max_pending > 0
    and over(declared.max_pending, (load.of_class[class] or 0) + delayed_of(q, load, class)) then
    return class .. '_limit', timings.class_limit_retry_ms
  end
  if costly and costly.max_pending > 0
    and over(costly.max_pending, (load.of_cost[cost] or 0) + delayed_of(q, load, 'cost:' .. cost)) then
    return cost .. '_limit', timings.class_limit_retry_ms
  end
  if unreachable(q, load, job.deadline - q.now - timings.margin_ms) then return 'deadline_unreachable', nil end
  return nil
end

local function accept(q, job, class, cost, known)
  local key, now = J.key(q, job.id), digits(q.now)
  if known then
    redis.call('DEL', key)
    index(q, 'ZREM', q.p .. 'queue:refusals', job.id)
  end
  local words = { 'state', 'ready', 'class', class, 'deadline', digits(job.deadline), 'fp', job.fp, 'rev', '1', 'eligible', now,
    'admitted_at', now }
  if cost ~= '-' then
    words[#words + 1] = 'cost'
    words[#words + 1] = cost
  end
  if class ~= job.class then
    words[#words + 1] = 'declared'
    words[#words + 1] = job.class
  end
  redis.call('HSET', key, unpack(words))
  redis.call('SET', J.payload_key(q, job.id), job.payload)
  J.know_pair(q, class, cost)
  J.enter(q, { id = job.id, state = 'ready', class = class, cost = cost, deadline = job.deadline, eligible = q.now })
  local load = q.load
  load.ready = load.ready + 1
  load.of_class[class] = (load.of_class[class] or 0) + 1
  load.of_cost[cost] = (load.of_cost[cost] or 0) + 1
  count(q, 'admitted')
  count_class(q, class, 'admitted')
  return 1, '', -1
end

-- The stored decision for the key, or nothing where it has to be decided (again, under the same id).
local function stored_answer(q, job, state, fp, reason, retry_at)
  if fp ~= job.fp then return 2, 'conflict', -1 end
  if state ~= 'refused' then
    count(q, 'replayed')
    return 3, '', -1
  end
  if retry_at == 0 or retry_at > q.now then
    count(q, 'replayed')
    return 2, reason, retry_at > 0 and retry_at - q.now or -1
  end
  return nil
end

local function decide(q, g, job)
  local known = redis.call('HMGET', J.key(q, job.id), 'state', 'fp', 'reason', 'retry_at')
  if known[1] then
    local verdict, reason, wait = stored_answer(q, job, known[1], known[2], known[3] or '', tonumber(known[4]) or 0)
    if verdict then return verdict, reason, wait end
  end
  local timings, declared = q.s.timings, q.s.classes[job.class]
  local class = declared and job.class or (not q.s.strict_classes and 'other') or nil
  local cost = none(job.cost_class) or (declared and declared.cost_class) or '-'
  if job.deadline == 0 and job.within_ms > 0 then job.deadline = q.now + job.within_ms end
  if job.deadline == 0 and declared then job.deadline = q.now + declared.deadline_ms end
  local shut = q.closed or (g.ramp and not in_ramp_share(job.id, g.ramp) and 'ramp')
  if shut then return refuse(q, job, shut, timings.closed_retry_ms) end
  if not class or (cost ~= '-' and not q.s.cost_classes[cost]) then return refuse(q, job, 'unknown_class', nil) end
  local reason, retry_ms = capacity_refusal(q, job, class, cost)
  if reason then return refuse(q, job, reason, retry_ms) end
  return accept(q, job, class, cost, known[1])
end

function commands.admit(q)
  if not q.s then return { '0' } end
  local g, v = G.read(q), q.v
  q.closed = closed(q, g)
  local list = { digits(g.epoch) }
  for i = 3, #v, FIELDS do
    local job = { id = v[i], class = v[i + 1], cost_class = v[i + 2], deadline = tonumber(v[i + 3]) or 0,
      within_ms = tonumber(v[i + 4]) or 0, fp = v[i + 5], payload = v[i + 6] }
    local n = #list
    list[n + 1], list[n + 2], list[n + 3] = decide(q, g, job)
  end
  return list
end
hot.admit = true

-- admit (id, class, fp, payload, wishes)*: decide, store the decision, enqueue; atomic for each job. The rules run in one
-- fixed order (SPEC §5). At most 100 jobs a call. The id is the idempotency key. wishes is '' or
-- `deadline_ms deadline_in_ms cost_class`: an instant, a time from now (with both 0 the deadline is the class's), a cost
-- class ('' for the class's).
-- -> epoch, then for each job its verdict: 1 accepted, 0 refused, + 2 where it was stored before; a refusal is followed
-- by its reason and retry_after_ms, -1 where coming back never helps. Without stored settings the epoch alone, "0".

local FIELDS = 5

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
  load.delayed_of, load.each_ms = {}, {}
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

-- Whether the jobs of this class, at its share of the workers, take longer than the part of the time left that the
-- contract allows. The wait behind all classes would starve the one whose deadline is shortest.
local function backlogged(q, load, class, left)
  local declared = q.s.classes[class]
  if left <= 0 or not declared then return left <= 0 end
  load.each_ms[class] = load.each_ms[class] or F.service_ms(q, class) / (q.s.max_running * declared.share)
  local waiting = (load.of_class[class] or 0) + delayed_of(q, load, class)
  return waiting * load.each_ms[class] > q.s.backlog_limit * left
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
  local left = job.deadline - q.now - timings.margin_ms
  local late
  if q.s.backlog_limit > 0 then late = backlogged(q, load, class, left) else late = unreachable(q, load, left) end
  if late then return 'deadline_unreachable', nil end
  return nil
end

-- The new members of a pair's indexes; written together at the end of the call.
local function fresh_of(q, class, cost)
  local name = class .. ':' .. cost
  local fresh = q.fresh[name]
  if not fresh then
    J.know_pair(q, class, cost)
    fresh = { class = class, fifo = {}, ready = {}, n = 0 }
    q.fresh[name] = fresh
  end
  return fresh
end

local function write_fresh(q)
  for name, fresh in pairs(q.fresh) do
    redis.call('ZADD', q.p .. 'queue:fifo:' .. name, unpack(fresh.fifo))
    redis.call('ZADD', q.p .. 'queue:ready:' .. name, unpack(fresh.ready))
    count_class(q, fresh.class, 'admitted', fresh.n)
    count(q, 'admitted', fresh.n)
    q.woken = q.woken + fresh.n
  end
  if #q.listed > 0 and J.keeps_list(q) then redis.call('RPUSH', q.p .. 'queue:pending', unpack(q.listed)) end
end

-- Of several jobs with the deadline of their class the text is the same.
local function deadline_text(q, deadline)
  if q.deadline ~= deadline then q.deadline, q.deadline_text = deadline, digits(deadline) end
  return q.deadline_text
end

local function accept(q, job, class, cost, known)
  local key, deadline, id = q.p .. 'job:' .. job.id, deadline_text(q, job.deadline), job.id
  if known then
    redis.call('DEL', key)
    redis.call('ZREM', q.p .. 'queue:refusals', id)
  end
  redis.call('HSET', key, 'state', 'ready', 'class', class, 'deadline', deadline, 'fp', job.fp, 'admitted_at', q.now_text)
  if cost ~= '-' then redis.call('HSET', key, 'cost', cost) end
  if class ~= job.class then redis.call('HSET', key, 'declared', job.class) end
  redis.call('SET', q.p .. 'payload:' .. id, job.payload)
  local fresh, load = fresh_of(q, class, cost), q.load
  local n = fresh.n
  fresh.n = n + 1
  fresh.fifo[2 * n + 1], fresh.fifo[2 * n + 2] = q.now_text, id
  fresh.ready[2 * n + 1], fresh.ready[2 * n + 2] = deadline, id
  q.listed[#q.listed + 1] = id
  load.ready = load.ready + 1
  load.of_class[class] = (load.of_class[class] or 0) + 1
  load.of_cost[cost] = (load.of_cost[cost] or 0) + 1
  return 1
end

-- The stored decision for the key, or nothing where it has to be decided (again, under the same id).
local function stored_answer(q, job, state, fp, reason, retry_at)
  if fp ~= job.fp then return 2, 'conflict', -1 end
  if state ~= 'refused' then
    count(q, 'replayed')
    return 3
  end
  if retry_at == 0 or retry_at > q.now then
    count(q, 'replayed')
    return 2, reason, retry_at > 0 and retry_at - q.now or -1
  end
  return nil
end

-- What is stored under the key, or nil. Where no key of the call had a record before it, only this call can have made one.
local function known_record(q, id)
  if q.none_known and not q.decided[id] then return nil end
  local record = redis.call('HMGET', J.key(q, id), 'state', 'fp', 'reason', 'retry_at')
  return record[1] and record
end

local function decide(q, g, job)
  local known = known_record(q, job.id)
  if known then
    local verdict, reason, wait = stored_answer(q, job, known[1], known[2], known[3] or '', tonumber(known[4]) or 0)
    if verdict then return verdict, reason, wait end
  end
  q.decided[job.id] = true
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
  return accept(q, job, class, cost, known)
end

local function none_known(q)
  local keys, v = {}, q.v
  if #v == 2 + FIELDS then return false end -- one job: its record is looked up at once
  for i = 3, #v, FIELDS do keys[#keys + 1] = q.p .. 'job:' .. v[i] end
  return #keys == 0 or redis.call('EXISTS', unpack(keys)) == 0
end

local function job_of(v, i)
  local job = { id = v[i], class = v[i + 1], fp = v[i + 2], payload = v[i + 3], deadline = 0, within_ms = 0 }
  if v[i + 4] ~= '' then
    local deadline, within_ms, cost_class = string.match(v[i + 4], '^(%d+) (%d+) (.*)$')
    job.deadline, job.within_ms, job.cost_class = tonumber(deadline), tonumber(within_ms), cost_class
  end
  return job
end

function commands.admit(q)
  if not q.s then return { '0' } end
  local g, v = G.read(q), q.v
  q.closed, q.none_known, q.decided, q.now_text = closed(q, g), none_known(q), {}, digits(q.now)
  q.fresh, q.listed = {}, {}
  local list = { digits(g.epoch) }
  for i = 3, #v, FIELDS do
    local n, verdict, reason, wait = #list, decide(q, g, job_of(v, i))
    list[n + 1], list[n + 2], list[n + 3] = verdict, reason, wait
  end
  write_fresh(q)
  return list
end
hot.admit = true

-- admit (id, class, fp, payload, wishes)*: decide, store the decision, enqueue; atomic for each job. The rules run in one
-- fixed order (contract §5). At most 100 jobs a call. The id is the idempotency key. wishes is '' or
-- `deadline_ms deadline_in_ms cost_class`: an instant, a time from now (with both 0 the deadline is the class's), a cost
-- class ('' for the class's).
-- -> epoch, then for each job its verdict: 1 accepted, 0 refused, + 2 where it was stored before; a refusal is followed
-- by its reason and retry_after_ms, -1 where coming back never helps. Without stored settings the epoch alone, "0".

local FIELDS = 5

local function refuse(q, job, reason, retry_ms)
  local key = J.key(q, job.id)
  local retry_at = digits(retry_ms and q.now + retry_ms or 0)
  redis.call('HSET', key, 'state', 'refused', 'fp', job.fp, 'reason', reason, 'retry_at', retry_at, 'decided_at',
    q.admission.now)
  local kept_ms = (retry_ms or 0) + q.s.timings.refusal_retention_ms
  redis.call('PEXPIRE', key, digits(kept_ms))
  -- By when its record goes, not by when it comes due: a final refusal never comes due, and stands all the same.
  index(q, 'ZADD', q.p .. 'queue:refusals', q.now + kept_ms, job.id)
  count(q, 'refused:' .. reason)
  count_class(q, job.class, 'refused:' .. reason)
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
  if q.admission.load then return q.admission.load end
  local p, load = q.p, { of_class = {}, of_cost = {}, ready = 0, delayed = 0, running = 0, delayed_of = {} }
  for _, pair in ipairs(J.pairs(q)) do
    local ready = redis.call('ZCARD', p .. 'queue:fifo:' .. pair.name)
    load.ready = load.ready + ready
    load.of_class[pair.class] = (load.of_class[pair.class] or 0) + ready
    load.of_cost[pair.cost] = (load.of_cost[pair.cost] or 0) + ready
  end
  load.delayed = redis.call('ZCARD', p .. 'queue:delayed')
  load.running = redis.call('ZCARD', p .. 'queue:leases') - redis.call('ZCARD', p .. 'running:canary')
  q.admission.load = load
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

-- What a named class and a wished cost class ('' for the class's own) come to; looked up once a call. Without a class, or
-- with a cost class that is not declared, there is none such.
local function kind_of(q, named, wished)
  local name = wished == '' and named or named .. ' ' .. wished
  local kind = q.admission.kinds[name]
  if kind then return kind end
  local classes, declared = q.s.classes, q.s.classes[named]
  local class = declared and named or (not q.s.strict_classes and OTHER) or nil
  local cost = none(wished) or (declared and declared.cost_class) or '-'
  local costly = q.s.cost_classes[cost]
  kind = { named = named, class = class, cost = cost, declared = declared, limits = class and classes[class],
    costly = costly, unknown = not class or wished == '-' or (cost ~= '-' and not costly), fresh = nil }
  q.admission.kinds[name] = kind
  return kind
end

local function capacity_refusal(q, kind, deadline)
  local s, load, limits, costly = q.s, load_of(q), kind.limits, kind.costly
  local pending = load.ready + load.delayed
  if pending >= s.max_pending or pending + load.running >= s.max_pending + s.max_running then
    return 'overloaded', s.timings.overloaded_retry_ms
  end
  if limits and limits.max_pending > 0
    and over(limits.max_pending, (load.of_class[kind.class] or 0) + delayed_of(q, load, kind.class)) then
    return kind.class .. '_limit', s.timings.class_limit_retry_ms
  end
  if costly and costly.max_pending > 0
    and over(costly.max_pending, (load.of_cost[kind.cost] or 0) + delayed_of(q, load, 'cost:' .. kind.cost)) then
    return kind.cost .. '_limit', s.timings.class_limit_retry_ms
  end
  local left = deadline - q.now - s.timings.margin_ms
  local late
  if s.backlog_limit > 0 then
    local waiting = (load.of_class[kind.class] or 0) + delayed_of(q, load, kind.class)
    late = B.full(q, load, kind.class, waiting, deadline)
  else
    late = unreachable(q, load, left)
  end
  if late then return 'deadline_unreachable', nil end
  return nil
end

-- The new members of a pair's indexes; written together at the end of the call.
local function fresh_of(q, kind)
  local name = kind.class .. ':' .. kind.cost
  local fresh = q.admission.fresh[name]
  if not fresh then
    J.know_pair(q, kind.class, kind.cost)
    fresh = { class = kind.class, fifo = { nil, nil }, ready = { nil, nil }, n = 0 }
    q.admission.fresh[name] = fresh
  end
  kind.fresh = fresh
  return fresh
end

local function write_fresh(q)
  local a = q.admission
  if a.accepted == 0 then return end
  for name, fresh in pairs(a.fresh) do
    redis.call('ZADD', q.p .. 'queue:fifo:' .. name, unpack(fresh.fifo))
    redis.call('ZADD', q.p .. 'queue:ready:' .. name, unpack(fresh.ready))
    count_class(q, fresh.class, 'admitted', fresh.n)
  end
  redis.call('MSET', unpack(a.payloads))
  if J.keeps_list(q) then redis.call('RPUSH', q.p .. 'queue:pending', unpack(a.listed)) end
  count(q, 'admitted', a.accepted)
  q.woken = q.woken + a.accepted
end

-- Of several jobs with the deadline of their class the text is the same.
local function deadline_text(a, deadline)
  if a.deadline ~= deadline then a.deadline, a.deadline_text = deadline, digits(deadline) end
  return a.deadline_text
end

local function accept(q, job, kind, deadline, known)
  local a, id, class, cost = q.admission, job.id, kind.class, kind.cost
  local key, text = q.p .. 'job:' .. id, deadline_text(a, deadline)
  if known then
    redis.call('DEL', key)
    redis.call('ZREM', q.p .. 'queue:refusals', id)
  end
  redis.call('HSET', key, 'state', 'ready', 'class', class, 'deadline', text, 'fp', job.fp, 'admitted_at', a.now)
  if cost ~= '-' then redis.call('HSET', key, 'cost', cost) end
  if class ~= kind.named then redis.call('HSET', key, 'declared', kind.named) end
  local n, fresh, load = a.accepted + 1, kind.fresh or fresh_of(q, kind), a.load
  a.accepted, a.listed[n] = n, id
  a.payloads[2 * n - 1], a.payloads[2 * n] = q.p .. 'payload:' .. id, job.payload
  n = fresh.n + 1
  fresh.n = n
  fresh.fifo[2 * n - 1], fresh.fifo[2 * n] = a.now, id
  fresh.ready[2 * n - 1], fresh.ready[2 * n] = text, id
  load.ready = load.ready + 1
  load.of_class[class] = (load.of_class[class] or 0) + 1
  if q.s.backlog_limit > 0 and q.s.dispatch == 'edf' then B.take(q, load, class, deadline) end
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
  local a = q.admission
  if a.none_known and not a.decided[id] then return nil end
  local record = redis.call('HMGET', J.key(q, id), 'state', 'fp', 'reason', 'retry_at')
  return record[1] and record
end

local function deadline_of(q, job, kind)
  if job.deadline > 0 then return job.deadline end
  if job.within_ms > 0 then return q.now + job.within_ms end
  return kind.declared and q.now + kind.declared.deadline_ms or 0
end

-- Why nobody, or not this key, gets in; the gate is read where the first job of a call has to be decided.
local function shut(q, id)
  local a = q.admission
  if not a.gate then
    a.gate = G.glance(q)
    a.closed = closed(q, a.gate)
  end
  return a.closed or (a.gate.ramp and not in_ramp_share(id, a.gate.ramp) and 'ramp')
end

local function decide(q, job)
  local known = known_record(q, job.id)
  if known then
    local verdict, reason, wait = stored_answer(q, job, known[1], known[2], known[3] or '', tonumber(known[4]) or 0)
    if verdict then return verdict, reason, wait end
  end
  q.admission.decided[job.id] = true
  local why = shut(q, job.id)
  if why then return refuse(q, job, why, q.s.timings.closed_retry_ms) end
  local kind = kind_of(q, job.class, job.cost_class)
  if kind.unknown then return refuse(q, job, 'unknown_class', nil) end
  local deadline = deadline_of(q, job, kind)
  local reason, retry_ms = capacity_refusal(q, kind, deadline)
  if reason then return refuse(q, job, reason, retry_ms) end
  return accept(q, job, kind, deadline, known)
end

local function none_known(q)
  local keys, v = {}, q.v
  if #v == 2 + FIELDS then return false end -- one job: its record is looked up at once
  for i = 3, #v, FIELDS do keys[#keys + 1] = q.p .. 'job:' .. v[i] end
  return #keys == 0 or redis.call('EXISTS', unpack(keys)) == 0
end

-- One table serves all jobs of a call, one after the other.
local function read_job(job, v, i)
  job.id, job.class, job.fp, job.payload = v[i], v[i + 1], v[i + 2], v[i + 3]
  job.deadline, job.within_ms, job.cost_class = 0, 0, ''
  if v[i + 4] ~= '' then
    local deadline, within_ms, cost_class = string.match(v[i + 4], '^(%d+) (%d+) (.*)$')
    job.deadline, job.within_ms, job.cost_class = tonumber(deadline), tonumber(within_ms), cost_class
  end
end

-- The epoch, from the gate where it was read.
local function epoch_of(q)
  local gate = q.admission.gate
  return digits(gate and gate.epoch or whole_number(text_of(q.p .. 'control:epoch')) or 0)
end

function commands.admit(q)
  if not q.s then return { '0' } end
  local v, job, list, n = q.v, {}, { '0', nil }, 1
  -- Here and above with room for one job: a table that has to grow costs as much as a write.
  q.admission = { now = digits(q.now), none_known = none_known(q), decided = {}, kinds = {}, fresh = {}, accepted = 0,
    listed = { nil }, payloads = { nil, nil }, gate = nil, closed = nil, load = nil, deadline = -1, deadline_text = '' }
  for i = 3, #v, FIELDS do
    read_job(job, v, i)
    local verdict, reason, wait = decide(q, job)
    n = n + 1
    list[n] = verdict
    if reason then
      list[n + 1], list[n + 2] = reason, wait
      n = n + 2
    end
  end
  list[1] = epoch_of(q)
  write_fresh(q)
  return list
end
hot.admit = true

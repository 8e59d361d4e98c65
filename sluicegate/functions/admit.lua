-- admit (id, class, fp, payload, wishes)*: decide, store the decision, enqueue; atomic for each job. The rules run in one
-- fixed order (contract §5). At most 100 jobs a call. The id is the idempotency key. wishes is '' or
-- `deadline_ms deadline_in_ms cost_class`: an instant, a time from now (with both 0 the deadline is the class's), a cost
-- class ('' for the class's).
-- -> epoch, then for each job its verdict: 1 accepted, 0 refused, + 2 where it was stored before; a refusal is followed
-- by its reason and retry_after_ms, -1 where coming back never helps. Without stored settings the epoch alone, "0".

do

local FIELDS = 5

local function refuse(q, job, reason, retry_ms)
  local key, kept_ms = J.key(q, job.id), (retry_ms or 0) + q.s.timings.refusal_retention_ms
  local retry_at = retry_ms and digits(q.now + retry_ms) or '0'
  redis.call('HSET', key, 'state', 'refused', 'fp', job.fp, 'reason', reason, 'retry_at', retry_at, 'decided_at',
    q.admission.now)
  redis.call('PEXPIRE', key, digits(kept_ms))
  -- By when its record goes, not by when it comes due: a final refusal never comes due, and stands all the same.
  index(q, 'ZADD', known_of(q).keys['queue:refusals'], q.now + kept_ms, job.id)
  count(q, 'refused:' .. reason)
  count_class(q, job.class, 'refused:' .. reason)
  return 0, reason, retry_ms or -1
end

local function in_ramp_share(key, percent)
  return tonumber(string.sub(redis.sha1hex(key), 1, 8), 16) % 100 < percent
end

-- What is made of the contract once, until another one is in force: the kinds of jobs, and whether it limits any of them.
local function made_of_contract(q)
  local known, s = known_of(q), q.s
  if known.settings ~= s then
    known.settings, known.kinds, known.limits = s, {}, s.backlog_limit > 0
    for _, class in pairs(s.classes) do known.limits = known.limits or class.max_pending > 0 end
    for _, cost in pairs(s.cost_classes) do known.limits = known.limits or cost.max_pending > 0 end
  end
  return known
end

-- What there is at the beginning of the call; each acceptance adds to it. Pending counts delayed. room is what the limits of
-- the whole queue leave; of the leases those of canaries count for nothing, and are asked for where that may matter.
-- of_class and of_cost are there where the contract limits any of them.
local function load_of(q)
  local a, p, s = q.admission, q.p, q.s
  if a.load then return a.load end
  local known = made_of_contract(q)
  local keys, limits = known.keys, known.limits
  local load = { of_class = limits and {}, of_cost = limits and {}, ready = 0, delayed = 0, room = 0, delayed_of = nil,
    done = nil, limit = nil }
  for _, pair in ipairs(J.shared_pairs(q).all) do
    local ready = redis.call('ZCARD', pair.fifo)
    load.ready = load.ready + ready
    if limits then
      load.of_class[pair.class] = (load.of_class[pair.class] or 0) + ready
      load.of_cost[pair.cost] = (load.of_cost[pair.cost] or 0) + ready
    end
  end
  load.delayed = redis.call('ZCARD', keys['queue:delayed'])
  local room = s.max_pending - load.ready - load.delayed
  local leases = redis.call('ZCARD', keys['queue:leases'])
  if leases > s.max_running then
    room = math.min(room, room + s.max_running - leases + redis.call('ZCARD', p .. 'running:canary'))
  end
  load.room = room
  a.load = load
  return load
end

-- The delayed of a class, or of a cost class as `cost:{cost_class}`.
local function delayed_of(q, load, name)
  if load.delayed == 0 then return 0 end
  load.delayed_of = load.delayed_of or {}
  load.delayed_of[name] = load.delayed_of[name] or redis.call('ZCARD', q.p .. 'queue:delayed:' .. name)
  return load.delayed_of[name]
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

-- What a named class and a wished cost class ('' for the class's own) come to. Without a class, or with a cost class that is
-- not declared, there is none such. limited: by more than by the whole queue and its own deadline.
local function kind_of(q, named, wished)
  local s, classes, declared = q.s, q.s.classes, q.s.classes[named]
  local class = declared and named or (not s.strict_classes and OTHER) or nil
  local cost = none(wished) or (declared and declared.cost_class) or '-'
  local limits, costly = class and classes[class], s.cost_classes[cost]
  if not class or wished == '-' or (cost ~= '-' and not costly) then return { unknown = true } end
  local most, most_costly = limits and limits.max_pending or 0, costly and costly.max_pending or 0
  local pair = class .. ':' .. cost
  return { class = class, cost = cost, pair = pair, most = most, most_costly = most_costly,
    limited = most > 0 or most_costly > 0 or s.backlog_limit > 0, deadline_ms = declared and declared.deadline_ms,
    fifo = q.p .. 'queue:fifo:' .. pair, ready = q.p .. 'queue:ready:' .. pair, unknown = false }
end

-- The same, kept of what the contract declares until another one is in force: by wished cost class, then by class.
local function known_kind(q, job)
  local kinds, named, wished = made_of_contract(q).kinds, job.class, job.cost_class
  local kind = kinds[wished] and kinds[wished][named]
  if not kind then
    kind = kind_of(q, named, wished)
    if kind.deadline_ms then
      kinds[wished] = kinds[wished] or {}
      kinds[wished][named] = kind
    end
  end
  return kind
end

-- What limits a kind beside the whole queue: its class, its cost class, and the backlog limit.
local function limited(q, load, kind, deadline)
  local class, wait_ms = kind.class, q.s.timings.class_limit_retry_ms
  local waiting = (load.of_class[class] or 0) + delayed_of(q, load, class)
  if kind.most > 0 and waiting >= kind.most then return class .. '_limit', wait_ms end
  if kind.most_costly > 0
    and (load.of_cost[kind.cost] or 0) + delayed_of(q, load, 'cost:' .. kind.cost) >= kind.most_costly then
    return kind.cost .. '_limit', wait_ms
  end
  if q.s.backlog_limit > 0 and B.full(q, load, class, waiting, deadline) then return 'deadline_unreachable', nil end
  return nil
end

local function capacity_refusal(q, load, kind, deadline)
  if load.room <= 0 then return 'overloaded', q.s.timings.overloaded_retry_ms end
  if kind.limited then
    local reason, retry_ms = limited(q, load, kind, deadline)
    if reason then return reason, retry_ms end
  end
  if q.s.backlog_limit <= 0 and unreachable(q, load, deadline - q.now - q.s.timings.margin_ms) then
    return 'deadline_unreachable', nil
  end
  return nil
end

-- How many jobs in a row, this one and those of its class behind it, may be accepted without another look: what limits
-- them is then the whole queue, and the wait that is predicted without completions.
local function run_length(q, a, load, kind, job, deadline)
  if kind.limited or a.ramp or not a.none_known or job.wishes ~= '' then return 1 end
  local left = deadline - q.now - q.s.timings.margin_ms
  local reachable = math.floor(left * q.s.prediction_min_completions / q.s.timings.provider_window_ms) - load.ready + 1
  return math.max(1, math.min(load.room, reachable))
end

local function write_record(kind, key, now, deadline, job_class, fp)
  redis.call('HSET', key, 'state', 'ready', 'class', kind.class, 'deadline', deadline, 'fp', fp, 'admitted_at', now)
  if kind.cost ~= '-' then redis.call('HSET', key, 'cost', kind.cost) end
  if kind.class ~= job_class then redis.call('HSET', key, 'declared', job_class) end
end

-- The words of what a kind's accepted jobs add to its indexes; of several jobs they are written together at the end.
local function fresh_of(a, kind)
  local fresh = a.fresh[kind.pair]
  if not fresh then
    fresh = { kind = kind, fifo = { nil, nil }, ready = { nil, nil }, n = 0 }
    a.fresh[kind.pair] = fresh
  end
  return fresh
end

local function write_fresh(q, a)
  for _, fresh in pairs(a.fresh) do
    local kind = fresh.kind
    redis.call('ZADD', kind.fifo, unpack(fresh.fifo))
    redis.call('ZADD', kind.ready, unpack(fresh.ready))
    count_class(q, kind.class, 'admitted', fresh.n)
  end
  redis.call('MSET', unpack(a.payloads))
  if J.keeps_list(q) then put('RPUSH', known_of(q).keys['queue:pending'], unpack(a.listed)) end
  count(q, 'admitted', a.accepted)
end

local function accept_lone(q, a, kind, deadline)
  local id, text, now = q.v[3], digits(deadline), a.now
  -- The record last: what it stands for is there, whatever ends the call before it.
  redis.call('SET', q.p .. 'payload:' .. id, q.v[6])
  redis.call('ZADD', kind.fifo, now, id)
  redis.call('ZADD', kind.ready, text, id)
  write_record(kind, q.p .. 'job:' .. id, now, text, q.v[4], q.v[5])
  if J.keeps_list(q) then put('RPUSH', known_of(q).keys['queue:pending'], id) end
  count_class(q, kind.class, 'admitted')
  count(q, 'admitted')
  a.accepted = 1
  return 1
end

-- Accept the job at i, and of those behind it at most as many as make `most` of one class with its own deadline. Gives how
-- many. Whatever is the same for all of them is looked at once, for this is where a batch spends its time.
local function accept_run(q, a, load, kind, deadline, i, most)
  local v, named, decided, class, now, text = q.v, q.v[i + 1], a.decided, kind.class, a.now, digits(deadline)
  local fresh, listed, payloads, call = fresh_of(a, kind), a.listed, a.payloads, redis.call
  local fifo, ready, of_jobs, of_payloads = fresh.fifo, fresh.ready, q.p .. 'job:', q.p .. 'payload:'
  local plain, n, at, before = kind.cost == '-' and class == named, a.accepted, 2 * fresh.n, a.accepted
  repeat
    local id = v[i]
    if plain then
      call('HSET', of_jobs .. id, 'state', 'ready', 'class', class, 'deadline', text, 'fp', v[i + 2], 'admitted_at', now)
    else
      write_record(kind, of_jobs .. id, now, text, named, v[i + 2])
    end
    decided[id] = true
    n, at = n + 1, at + 2
    listed[n] = id
    payloads[2 * n - 1], payloads[2 * n] = of_payloads .. id, v[i + 3]
    fifo[at - 1], fifo[at] = now, id
    ready[at - 1], ready[at] = text, id
    i = i + FIELDS
  until n - before == most or v[i + 1] ~= named or v[i + 4] ~= '' or decided[v[i]]
  local accepted = n - before
  a.accepted, fresh.n = n, fresh.n + accepted
  load.ready, load.room = load.ready + accepted, load.room - accepted
  if load.of_class then
    load.of_class[class] = (load.of_class[class] or 0) + accepted
    load.of_cost[kind.cost] = (load.of_cost[kind.cost] or 0) + accepted
  end
  if q.s.backlog_limit > 0 and q.s.dispatch == 'edf' then B.take(q, load, class, deadline) end
  return accepted
end

local function accept(q, a, load, job, kind, deadline, i)
  J.know_pair(q, kind.pair)
  if a.alone then return accept_lone(q, a, kind, deadline) end
  return accept_run(q, a, load, kind, deadline, i, run_length(q, a, load, kind, job, deadline))
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
local function known_record(q, a, id)
  if a.none_known and not a.decided[id] then return nil end
  local record = redis.call('HMGET', q.p .. 'job:' .. id, 'state', 'fp', 'reason', 'retry_at')
  return record[1] and record
end

local function deadline_of(q, job, kind)
  if job.deadline > 0 then return job.deadline end
  if job.within_ms > 0 then return q.now + job.within_ms end
  return kind.deadline_ms and q.now + kind.deadline_ms or 0
end

-- Why nobody, or not this key, gets in; the gate is read where the first job of a call has to be decided.
local function shut(q, a, id)
  if not a.now then
    a.now = digits(q.now)
    a.closed, a.ramp, a.epoch = G.admission(q)
  end
  return a.closed or (a.ramp and not in_ramp_share(id, a.ramp) and 'ramp')
end

local function forget_refusal(q, id)
  redis.call('DEL', q.p .. 'job:' .. id)
  redis.call('ZREM', q.p .. 'queue:refusals', id)
end

-- Decide the job at i; gives its verdict, a refusal's reason and wait, and of an acceptance for how many jobs in a row it holds.
local function decide(q, a, job, i)
  local known = known_record(q, a, job.id)
  if known then
    local verdict, reason, wait = stored_answer(q, job, known[1], known[2], known[3] or '', tonumber(known[4]) or 0)
    if verdict then return verdict, reason, wait end
  end
  if not a.alone then a.decided[job.id] = true end
  local why = shut(q, a, job.id)
  if why then return refuse(q, job, why, q.s.timings.closed_retry_ms) end
  local kind = known_kind(q, job)
  if kind.unknown then return refuse(q, job, 'unknown_class', nil) end
  local load, deadline = load_of(q), deadline_of(q, job, kind)
  local reason, retry_ms = capacity_refusal(q, load, kind, deadline)
  if reason then return refuse(q, job, reason, retry_ms) end
  if known then forget_refusal(q, job.id) end
  return 1, nil, nil, accept(q, a, load, job, kind, deadline, i)
end

local function none_known(q)
  local keys, v = {}, q.v
  for i = 3, #v, FIELDS do keys[#keys + 1] = q.p .. 'job:' .. v[i] end
  return #keys == 0 or redis.call('EXISTS', unpack(keys)) == 0
end

-- One table serves all jobs of a call, one after the other.
local function read_job(job, v, i)
  job.id, job.class, job.fp, job.wishes = v[i], v[i + 1], v[i + 2], v[i + 4]
  job.deadline, job.within_ms, job.cost_class = 0, 0, ''
  if job.wishes ~= '' then
    local deadline, within_ms, cost_class = string.match(job.wishes, '^(%d+) (%d+) (.*)$')
    job.deadline, job.within_ms, job.cost_class = tonumber(deadline), tonumber(within_ms), cost_class
  end
end

-- The epoch, from the gate where it was read.
local function epoch_of(q, a)
  if a.epoch then return a.epoch end
  local known = known_of(q)
  local text = text_of(known.keys['control:epoch'])
  if known.judged and known.judged.epoch_text == text then return text end
  return digits(whole_number(text) or 0)
end

-- Decide all jobs of a call; their answers go to the end of the list.
local function decide_all(q, a, list)
  local v, n, i = q.v, 1, 3
  -- With room for what comes: a table that has to grow costs as much as a write.
  local job = { id = nil, class = nil, fp = nil, wishes = nil, deadline = 0, within_ms = 0, cost_class = '' }
  while v[i] do
    read_job(job, v, i)
    local verdict, reason, wait, run = decide(q, a, job, i)
    for _ = 1, run or 1 do
      n = n + 1
      list[n] = verdict
    end
    if reason then
      list[n + 1], list[n + 2] = reason, wait
      n = n + 2
    end
    i = i + FIELDS * (run or 1)
  end
  list[1] = epoch_of(q, a)
  if a.accepted > 0 and not a.alone then write_fresh(q, a) end
end

-- An index that somebody wrote over ends a call. Then it has accepted nothing: a job whose record no index names would be
-- accepted, and never done. An index that names one of these forgets it when it gets there.
local function take_back(q, a)
  for _, id in ipairs(a.listed) do redis.call('DEL', q.p .. 'job:' .. id, q.p .. 'payload:' .. id) end
end

function commands.admit(q)
  if not q.s then return { '0' } end
  local list, alone = { '0', nil }, #q.v == 2 + FIELDS
  -- What one job writes goes out at once; of its record it is known soon enough.
  if alone then q.gathered, q.counted = nil, nil end
  -- With room for what comes.
  local a = { now = nil, alone = alone, none_known = false, accepted = 0, epoch = nil, closed = nil, ramp = nil, load = nil }
  if not alone then
    a.none_known, a.decided, a.fresh, a.listed, a.payloads = none_known(q), {}, {}, {}, {}
  end
  q.admission = a
  if alone then
    decide_all(q, a, list)
  else
    local whole, why = pcall(decide_all, q, a, list)
    if not whole then
      take_back(q, a)
      return error(why)
    end
  end
  q.woken = q.woken + a.accepted
  return list
end
hot.admit = true

end

-- admit {jobs = [{id, key, class, cost_class, deadline_ms, deadline_in_ms, payload, fp}]}: decide, store the decision,
-- enqueue; atomic for each job. The rules run in one fixed order (SPEC §5). At most 100 jobs a call. A deadline is an
-- instant (deadline_ms) or a time from now (deadline_in_ms); with both 0 it is the class's.
-- -> {decisions = [{accepted, job_id, reason, retry_after_ms, replayed}], epoch}

local function refuse(q, job, id, reason, retry_ms)
  local key = q.p .. 'idem:' .. job.key
  local retry_at = retry_ms and q.now + retry_ms or 0
  redis.call('HSET', key, 'job_id', id, 'fp', job.fp, 'accepted', '0', 'reason', reason, 'retry_at', digits(retry_at),
    'at', digits(q.now))
  local kept_ms = (retry_ms or 0) + q.s.timings.refusal_retention_ms
  redis.call('PEXPIRE', key, digits(kept_ms))
  -- By when its record goes, not by when it comes due: a final refusal never comes due, and stands all the same.
  redis.call('ZADD', q.p .. 'queue:refusals', q.now + kept_ms, job.key)
  count(q, 'refused:' .. reason)
  return { accepted = false, job_id = id, reason = reason, retry_after_ms = retry_ms }
end

local function in_ramp_share(key, percent)
  return tonumber(string.sub(redis.sha1hex(key), 1, 8), 16) % 100 < percent
end

-- Why the gate refuses everybody or this key, or nil.
local function gate_refusal(q, g, key)
  if not G.readable(g) or G.effective(g) ~= 'admit' then return 'admission_closed' end
  if G.silent(q, g) then return 'controller_silent' end
  if g.ramp and not in_ramp_share(key, g.ramp) then return 'ramp' end
  return nil
end

local function over(limit, counted)
  return limit and limit > 0 and counted >= limit
end

local function pending_of_cost(q, cost)
  local pending = redis.call('ZCARD', q.p .. 'queue:delayed:cost:' .. cost)
    + redis.call('ZCARD', q.p .. 'queue:fifo:other:' .. cost)
  for class in pairs(q.s.classes) do
    pending = pending + redis.call('ZCARD', q.p .. 'queue:fifo:' .. class .. ':' .. cost)
  end
  return pending
end

local function capacity_refusal(q, job, class, cost)
  local timings = q.s.timings
  local pending = redis.call('ZCARD', q.p .. 'queue:enqueued') + redis.call('ZCARD', q.p .. 'queue:delayed')
  local running = redis.call('ZCARD', q.p .. 'queue:leases') - redis.call('ZCARD', q.p .. 'running:canary')
  if pending >= q.s.max_pending or pending + running >= q.s.max_pending + q.s.max_running then
    return 'overloaded', timings.overloaded_retry_ms
  end
  local declared, costly = q.s.classes[class], q.s.cost_classes[cost]
  local of_class = redis.call('ZCARD', q.p .. 'queue:deadlines:' .. class) - redis.call('ZCARD', q.p .. 'running:' .. class)
  if declared and over(declared.max_pending, of_class) then
    return class .. '_limit', timings.class_limit_retry_ms
  end
  if costly and over(costly.max_pending, pending_of_cost(q, cost)) then
    return cost .. '_limit', timings.class_limit_retry_ms
  end
  local left = job.deadline - q.now - timings.margin_ms
  local wait = F.predicted_wait_ms(q)
  if left <= 0 or (wait and wait > left) then return 'deadline_unreachable', nil end
  return nil
end

local function accept(q, job, id, class, cost)
  redis.call('HSET', J.key(q, id), 'state', 'ready', 'class', class, 'declared', job.class, 'cost', cost, 'deadline',
    digits(job.deadline), 'attempt', '0', 'retries', '0', 'losses', '0', 'key', job.key, 'fence', '0', 'rev', '1',
    'eligible', digits(q.now), 'admitted_at', digits(q.now), 'canary', '', 'worker', '')
  redis.call('SET', J.key(q, id) .. ':payload', job.payload)
  redis.call('HSET', q.p .. 'idem:' .. job.key, 'job_id', id, 'fp', job.fp, 'accepted', '1', 'reason', '', 'retry_at', '0',
    'at', digits(q.now))
  redis.call('PERSIST', q.p .. 'idem:' .. job.key)
  redis.call('ZREM', q.p .. 'queue:refusals', job.key)
  redis.call('ZADD', q.p .. 'queue:deadlines', job.deadline, id)
  redis.call('ZADD', q.p .. 'queue:deadlines:' .. class, job.deadline, id)
  J.enter(q, { id = id, state = 'ready', class = class, cost = cost, deadline = job.deadline, eligible = q.now })
  count(q, 'admitted')
  count_class(q, class, 'admitted')
  return { accepted = true, job_id = id, reason = '' }
end

local function replay(q, known)
  count(q, 'replayed')
  local accepted = known.accepted == '1'
  local retry_at = tonumber(known.retry_at) or 0
  local wait = retry_at > 0 and math.max(0, retry_at - q.now) or nil
  return { accepted = accepted, job_id = known.job_id, reason = known.reason, replayed = true,
    retry_after_ms = not accepted and wait or nil }
end

-- The stored decision for the key, or nil where it has to be decided (again, under the same job id).
local function stored_answer(q, job, known)
  if not known.job_id then return nil end
  if known.fp ~= job.fp then
    return { accepted = false, job_id = known.job_id, reason = 'conflict', replayed = true }
  end
  local retry_at = tonumber(known.retry_at) or 0
  if known.accepted == '1' or retry_at == 0 or retry_at > q.now then return replay(q, known) end
  return nil
end

local function decide(q, g, job)
  local known = hash_of(q.p .. 'idem:' .. job.key)
  local answer = stored_answer(q, job, known)
  if answer then return answer end
  local id = known.job_id or job.id
  -- A refusal makes no job, so whatever bears this id belongs to another key.
  if redis.call('EXISTS', J.key(q, id)) == 1 then
    return { accepted = false, job_id = id, reason = 'conflict' }
  end
  local timings = q.s.timings
  local class = q.s.classes[job.class] and job.class or (not q.s.strict_classes and 'other') or nil
  local declared = q.s.classes[job.class]
  local cost = none(job.cost_class) or (declared and declared.cost_class) or '-'
  job.deadline = tonumber(job.deadline_ms) or 0
  local within_ms = tonumber(job.deadline_in_ms) or 0
  if job.deadline == 0 and within_ms > 0 then job.deadline = q.now + within_ms end
  if job.deadline == 0 and declared then job.deadline = q.now + declared.deadline_ms end
  local closed = gate_refusal(q, g, job.key)
  if closed then return refuse(q, job, id, closed, timings.closed_retry_ms) end
  if not class or (cost ~= '-' and not q.s.cost_classes[cost]) then return refuse(q, job, id, 'unknown_class', nil) end
  local reason, retry_ms = capacity_refusal(q, job, class, cost)
  if reason then return refuse(q, job, id, reason, retry_ms) end
  return accept(q, job, id, class, cost)
end

function commands.admit(q)
  if not q.s then return { decisions = {}, unreadable = true, epoch = '0' } end
  local g = G.read(q)
  local decisions = {}
  for i, job in ipairs(q.a.jobs) do decisions[i] = decide(q, g, job) end
  return { decisions = decisions, epoch = digits(g.epoch) }
end

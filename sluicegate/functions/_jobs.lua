-- Jobs and their containers: the only code that moves a job from one state to another (SPEC §4).

-- What may follow what; sluicegate/job.py MOVES is the same table, and a test compares them.
local JOB_MOVES = {
  ready = { running = 1, expired = 1 },
  delayed = { ready = 1, expired = 1 },
  running = { ready = 1, delayed = 1, unknown = 1, blocked = 1, succeeded = 1, failed = 1, expired = 1 },
  unknown = { ready = 1, delayed = 1, succeeded = 1, failed = 1, expired = 1, blocked = 1 },
  blocked = { ready = 1, succeeded = 1, failed = 1, expired = 1 },
}

function J.key(q, id)
  return q.p .. 'job:' .. id
end

function J.read(q, id)
  local job = hash_of(J.key(q, id))
  if not job.state then return nil end
  job.id = id
  job.deadline = tonumber(job.deadline) or 0
  job.attempt = tonumber(job.attempt) or 0
  job.retries = tonumber(job.retries) or 0
  job.eligible = tonumber(job.eligible) or 0
  job.fence = tonumber(job.fence) or 0
  job.losses = tonumber(job.losses) or 0
  job.canary = none(job.canary)
  return job
end

function J.keeps_list(q)
  return q.s.max_pending <= 20000
end

-- The containers of a state that is about to be left.
function J.leave(q, job)
  local p, id, class = q.p, job.id, job.class
  if job.state == 'ready' then
    if job.canary then
      redis.call('ZREM', p .. 'queue:canary', id)
      return
    end
    if J.keeps_list(q) then redis.call('LREM', p .. 'queue:pending', 1, id) end
    redis.call('ZREM', p .. 'queue:fifo:' .. class .. ':' .. job.cost, id)
    redis.call('ZREM', p .. 'queue:enqueued', id)
    redis.call('ZREM', p .. 'queue:enqueued:' .. class, id)
    redis.call('ZREM', p .. 'queue:ready:' .. class, id)
  elseif job.state == 'delayed' then
    redis.call('ZREM', p .. 'queue:delayed', id)
    redis.call('ZREM', p .. 'queue:delayed:deadlines', id)
    if job.cost ~= '-' then redis.call('ZREM', p .. 'queue:delayed:cost:' .. job.cost, id) end
  elseif job.state == 'running' then
    redis.call('ZREM', p .. 'queue:leases', id)
    if job.canary then
      redis.call('ZREM', p .. 'running:canary', id)
    else
      redis.call('ZREM', p .. 'running:' .. class, id)
      redis.call('ZREM', p .. 'running:cost:' .. job.cost, id)
    end
  else
    redis.call('ZREM', p .. 'queue:' .. job.state, id)
    redis.call('ZREM', p .. 'queue:' .. job.state .. ':' .. class, id)
  end
end

local UNFINISHED = { ready = true, delayed = true, running = true }
local FINAL = { succeeded = true, failed = true, expired = true }

-- The containers of the state entered; head puts a requeued job first in the view for people.
function J.enter(q, job, head)
  local p, id, class = q.p, job.id, job.class
  if job.state == 'ready' then
    if job.canary then
      redis.call('ZADD', p .. 'queue:canary', job.eligible, id)
    else
      if J.keeps_list(q) then redis.call(head and 'LPUSH' or 'RPUSH', p .. 'queue:pending', id) end
      redis.call('ZADD', p .. 'queue:fifo:' .. class .. ':' .. job.cost, job.eligible, id)
      redis.call('ZADD', p .. 'queue:enqueued', job.eligible, id)
      redis.call('ZADD', p .. 'queue:enqueued:' .. class, job.eligible, id)
      redis.call('ZADD', p .. 'queue:ready:' .. class, job.deadline, id)
    end
    put('LPUSH', p .. 'queue:wake', '1')
    redis.call('LTRIM', p .. 'queue:wake', 0, 15)
  elseif job.state == 'delayed' then
    redis.call('ZADD', p .. 'queue:delayed', job.ready_at, id)
    redis.call('ZADD', p .. 'queue:delayed:deadlines', job.deadline, id)
    -- Pending counts delayed, for a cost class as well; without one there is no limit to count for.
    if job.cost ~= '-' then redis.call('ZADD', p .. 'queue:delayed:cost:' .. job.cost, job.ready_at, id) end
  elseif job.state == 'running' then
    redis.call('ZADD', p .. 'queue:leases', job.lease_end, id)
    if job.canary then
      redis.call('ZADD', p .. 'running:canary', job.lease_end, id)
    else
      redis.call('ZADD', p .. 'running:' .. class, job.lease_end, id)
      redis.call('ZADD', p .. 'running:cost:' .. job.cost, job.lease_end, id)
    end
  elseif not FINAL[job.state] then
    redis.call('ZADD', p .. 'queue:' .. job.state, q.now, id)
    redis.call('ZADD', p .. 'queue:' .. job.state .. ':' .. class, q.now, id)
  end
end

-- Move a job to another state with further fields; the deadline index holds all unfinished jobs but canaries.
function J.move(q, job, state, fields, head)
  if not (JOB_MOVES[job.state] and JOB_MOVES[job.state][state]) then
    error('job ' .. job.id .. ' cannot move from ' .. job.state .. ' to ' .. state)
  end
  J.leave(q, job)
  local was = job.state
  job.state = state
  local flat = { 'state', state }
  for name, value in pairs(fields or {}) do
    job[name] = value
    flat[#flat + 1] = name
    flat[#flat + 1] = type(value) == 'number' and digits(value) or value
  end
  redis.call('HSET', J.key(q, job.id), unpack(flat))
  redis.call('HINCRBY', J.key(q, job.id), 'rev', 1)
  J.enter(q, job, head)
  if job.canary then return end
  if UNFINISHED[state] and not UNFINISHED[was] then
    redis.call('ZADD', q.p .. 'queue:deadlines', job.deadline, job.id)
    redis.call('ZADD', q.p .. 'queue:deadlines:' .. job.class, job.deadline, job.id)
  elseif UNFINISHED[was] and not UNFINISHED[state] then
    redis.call('ZREM', q.p .. 'queue:deadlines', job.id)
    redis.call('ZREM', q.p .. 'queue:deadlines:' .. job.class, job.id)
  end
end

-- Let everything that belongs to a final job go after its retention.
function J.retain(q, job)
  local ms = digits(math.max(q.s.timings.final_retention_ms, 2 * J.longest_deadline(q)))
  redis.call('PEXPIRE', J.key(q, job.id), ms)
  redis.call('PEXPIRE', J.key(q, job.id) .. ':payload', ms)
  redis.call('PEXPIRE', q.p .. 'idem:' .. job.key, ms)
  redis.call('PEXPIRE', q.p .. 'ledger:' .. job.key, ms)
end

function J.longest_deadline(q)
  local longest = 0
  for _, class in pairs(q.s.classes) do longest = math.max(longest, class.deadline_ms) end
  return longest
end

function J.record_failure(q, job, reason, cause)
  local key = q.p .. 'failed:' .. utc_date(q.now)
  redis.call('RPUSH', key, cjson.encode({ job_id = job.id, reason = reason, cause = cause, queue_class = job.class,
    attempt = job.attempt, deadline_slack_s = (job.deadline - q.now) / 1000, idempotency_key = job.key,
    at_ms = q.now }))
  redis.call('PEXPIRE', key, digits(q.s.timings.failed_retention_ms))
end

-- End a job: succeeded, failed or expired. Every end that is not success has its line in failed:{date}.
function J.finish(q, job, state, cause)
  local was = job.state
  J.move(q, job, state, { ended_at = q.now, cause = cause or '' })
  J.retain(q, job)
  if job.canary then return end
  if state == 'expired' then
    count(q, 'expired')
    count_class(q, job.class, 'expired')
    J.record_failure(q, job, 'expired', cause or 'deadline')
    return
  end
  if state == 'failed' then
    count_class(q, job.class, 'failed')
    J.record_failure(q, job, 'failed', cause or was)
  else
    count_class(q, job.class, 'succeeded')
  end
  local met = state == 'succeeded' and q.now <= job.deadline and 'met' or 'missed'
  count(q, met)
  count_class(q, job.class, met)
end

-- End a canary that never ran.
function J.finish_record(q, id, state, cause)
  local job = J.read(q, id)
  if not job then return end
  redis.call('HSET', J.key(q, id), 'state', state, 'cause', cause, 'ended_at', digits(q.now))
  redis.call('HINCRBY', J.key(q, id), 'rev', 1)
  J.retain(q, job)
end

function J.event(q, job)
  return { job_id = job.id, queue_class = job.class, attempt = job.attempt, key = job.key,
    deadline_slack_s = (job.deadline - q.now) / 1000, canary = job.canary or nil }
end

-- A retry, a requeue or a job that was not executed becomes ready or delayed, or expires when too little is left.
function J.again(q, job, delay_ms, head)
  local ready_at = q.now + math.max(0, delay_ms)
  if ready_at > job.deadline - q.s.timings.margin_ms then
    J.finish(q, job, 'expired', 'no_time_for_retry')
    return 'expired'
  end
  local fields = { worker = '' }
  if delay_ms > 0 then
    fields.ready_at, fields.eligible = ready_at, ready_at
    J.move(q, job, 'delayed', fields)
    return 'delayed'
  end
  fields.eligible = head and job.eligible or q.now
  J.move(q, job, 'ready', fields, head)
  return 'ready'
end

function J.block(q, job, cause)
  count(q, 'blocked')
  J.move(q, job, 'blocked', { cause = cause, worker = '' })
  return 'blocked'
end

-- A lease ended without its worker's word: never straight back to pending, never to succeeded.
function J.lose(q, job, cause)
  count(q, 'lease_expired')
  local losses = job.losses + 1
  if job.canary then
    J.finish(q, job, 'failed', cause)
    G.canary_result(q, job, false, cause)
    return 'failed'
  end
  if losses >= q.s.loss_budget then
    redis.call('HSET', J.key(q, job.id), 'losses', losses)
    return J.block(q, job, 'poison')
  end
  count(q, 'unknown')
  J.move(q, job, 'unknown', { losses = losses, cause = cause })
  return 'unknown'
end

-- Runs, their fences and journals: one that holds the queue's lock, and those beside it (contract §7).

function R.journal(q, id, entry)
  put('XADD', q.p .. 'run:' .. id .. ':journal', '*', 'at', digits(q.now), 'seq', tostring(entry.seq or 0), 'verb',
    entry.verb or '', 'phase', entry.phase, 'actor', entry.actor or '', 'text', entry.text or '', 'detail',
    entry.detail or '{}')
  A.write(q, 'run', 'run', id, 'seq', tostring(entry.seq or 0), 'verb', entry.verb or '', 'phase', entry.phase, 'actor',
    entry.actor or '', 'text', entry.text or '', 'detail', entry.detail or '{}')
  if entry.phase == 'paged' then
    R.tell(q, 'holding', { run = id, actor = entry.actor, state = entry.verb, text = entry.text })
  end
end

-- How long an ended run is kept. A contract that was applied before this was a setting does not say.
function R.retention(q)
  return digits(q.s and q.s.timings.run_retention_ms or 90 * 86400000)
end

-- A run's record for readers: what somebody wrote over its numbers is left out.
function R.shown(run, id)
  run.id, run.response, run.state = id, nil, run.state or ''
  for _, field in ipairs({ 'step', 'started_at', 'ended_at', 'held_since', 'held_until', 'step_held_ms' }) do
    if not whole_number(run[field]) then run[field] = nil end
  end
  return run
end

function R.next_fence(q, run)
  return digits(math.max((tonumber(run.fence) or 0) + 1, q.us))
end

-- Write a run's record and its first journal entry. Nobody owns it yet: an executor claims it.
local function record(q, args)
  local id = none(args.id) or 'audit-' .. digits(q.us)
  local run = { id = id, runbook = args.runbook, state = 'running', step = '0', verb = '', fence = digits(q.us),
    owner = '', lease_end = '0', trigger = args.trigger, actor = args.actor, reason = args.reason, note = args.note or '',
    digest = args.digest or '', started_at = digits(q.now), episode = args.episode or '' }
  local flat = {}
  for name, value in pairs(run) do
    flat[#flat + 1] = name
    flat[#flat + 1] = value
  end
  redis.call('HSET', q.p .. 'run:' .. id, unpack(flat))
  R.journal(q, id, { phase = 'opened', actor = args.actor, text = args.trigger .. ': ' .. args.reason })
  R.tell(q, 'started', { run = id, runbook = args.runbook, actor = args.actor, state = args.trigger, text = args.reason })
  return run
end

-- Create a run holding the queue's lock.
function R.create(q, args)
  local run = record(q, args)
  redis.call('SET', q.p .. 'lock:run', run.id)
  put('ZADD', q.p .. 'runs:live', q.now, run.id)
  put('ZADD', q.p .. 'runs:recent', q.now, run.id)
  put('ZREMRANGEBYRANK', q.p .. 'runs:recent', 0, -1001)
  return run
end

-- Create a run beside it: the only one of its runbook.
function R.create_beside(q, args)
  local run = record(q, args)
  put('HSET', q.p .. 'lock:beside', run.runbook, run.id)
  put('ZADD', q.p .. 'runs:beside', q.now, run.id)
  put('ZREMRANGEBYRANK', q.p .. 'runs:beside', 0, -1001)
  return run
end

-- The run of this id if it is live and holds no lock, or nil.
function R.beside_of(q, id)
  local run = hash_of(q.p .. 'run:' .. id)
  if not run.runbook or run.state ~= 'running' then return nil end
  if redis.pcall('HGET', q.p .. 'lock:beside', run.runbook) ~= id then return nil end
  run.id = id
  return run
end

-- The live run beside the lock of a runbook, or nil.
function R.beside(q, runbook)
  local id = redis.pcall('HGET', q.p .. 'lock:beside', runbook)
  return type(id) == 'string' and R.beside_of(q, id) or nil
end

-- Every live run beside the lock.
function R.besides(q)
  local live = {}
  for _, id in pairs(hash_of(q.p .. 'lock:beside')) do live[#live + 1] = R.beside_of(q, id) end
  table.sort(live, function(one, other) return one.runbook < other.runbook end)
  return live
end

-- End all of them: by a kill switch, or with the gate's records.
function R.end_besides(q, state, why)
  if not q.s then return end
  for _, run in ipairs(R.besides(q)) do R.finish(q, run, state, why) end
end

-- Let go of what a run held.
local function unlock(q, run)
  if not RUNBOOKS[run.runbook] then
    put('HDEL', q.p .. 'lock:beside', run.runbook)
    return
  end
  redis.call('DEL', q.p .. 'lock:run')
  put('ZREM', q.p .. 'runs:live', run.id)
end

-- Count how the step that a run is in has ended (done, rolled_back, interrupted), with the time since its first entry.
function R.count_step(q, run, result)
  local since, verb = whole_number(run.step_at), run.verb or ''
  if not since or not string.match(verb, '^[a-z_]+$') then return end
  count(q, 'steps:' .. verb .. ':' .. result)
  count(q, 'step_ms:' .. verb, math.max(0, q.now - since))
  run.step_at = nil
  redis.call('HDEL', q.p .. 'run:' .. run.id, 'step_at')
end

-- Revoke the owner's fence; the state says what the next owner has to do.
function R.revoke(q, run, state, rollback_reason, why)
  R.count_step(q, run, 'rolled_back')
  run.fence, run.state, run.rollback_reason = R.next_fence(q, run), state, rollback_reason
  run.owner, run.lease_end = '', '0'
  redis.call('HSET', q.p .. 'run:' .. run.id, 'fence', run.fence, 'state', state, 'rollback_reason', rollback_reason,
    'owner', run.owner, 'lease_end', run.lease_end)
  R.journal(q, run.id, { seq = run.step, verb = run.verb, phase = 'rolled_back', actor = why.actor,
    text = rollback_reason .. ': ' .. (why.note or why.reason) })
  R.tell(q, 'rolled_back', { run = run.id, runbook = run.runbook, actor = why.actor, reason = rollback_reason,
    state = run.verb, text = why.note or why.reason })
end

-- End a run in a final state: its lock goes, the fence is revoked, the cooldown starts.
function R.finish(q, run, state, why)
  R.count_step(q, run, state == 'succeeded' and 'done' or 'interrupted')
  redis.call('HSET', q.p .. 'run:' .. run.id, 'state', state, 'ended_at', digits(q.now), 'fence', R.next_fence(q, run),
    'owner', '', 'lease_end', '0', 'ended_by', why.actor, 'ended_why', why.note or why.reason)
  R.journal(q, run.id, { seq = run.step, phase = 'ended', actor = why.actor, text = state .. ': ' .. (why.note or why.reason) })
  R.tell_end(q, run, state, why)
  unlock(q, run)
  redis.call('SET', q.p .. 'cooldown:' .. run.runbook, digits(q.now + q.s.timings.run_cooldown_ms), 'PX',
    digits(q.s.timings.run_cooldown_ms))
  for _, key in ipairs({ 'run:' .. run.id, 'run:' .. run.id .. ':journal', 'approval:' .. run.id }) do
    redis.call('PEXPIRE', q.p .. key, R.retention(q))
  end
  count(q, 'runs:' .. state)
  count(q, 'run_ms:' .. state, math.max(0, q.now - (whole_number(run.started_at) or q.now)))
end

-- What forbids a run on this queue that no named person asked for, whether it holds the lock or not, or nil. What holds
-- over all queues was asked apart; `permit` is what it came to.
function R.forbidden_to_all(q, runbook)
  if redis.call('EXISTS', q.p .. 'kill') == 1 then return 'kill_switch' end
  local until_ms = tonumber(text_of(q.p .. 'cooldown:' .. runbook)) or 0
  if until_ms > q.now then return 'cooldown' end
  local permit = q.a.permit
  if permit and permit ~= 'ask' and permit ~= 'granted' then return permit end
  return nil
end

-- What forbids a run that would hold the lock, or nil.
function R.forbidden(q, runbook)
  local forbidden = R.forbidden_to_all(q, runbook)
  if forbidden then return forbidden end
  local hour_ago = q.now - 3600000
  if redis.call('ZCOUNT', q.p .. 'runs:recent', hour_ago, '+inf') >= q.s.runs_per_hour then return 'runs_per_hour' end
  return nil
end

-- What this queue's contract allows over all queues. One that was applied before these were settings does not say.
function R.limits(q)
  return { limit = q.s.concurrent_runs or 2, storm_queues = q.s.storm_queues or 5,
    storm_ms = q.s.timings.storm_window_ms or 300000 }
end

-- Whether a lease that may last so long goes on. One that ends later than it may was given by a clock that has been set
-- back since: its holder may be gone, and if it is not, its fence is revoked with it.
function R.leased(q, ends, longest_ms)
  local until_ms = tonumber(ends) or 0
  return until_ms > q.now and until_ms <= q.now + longest_ms
end

-- A run is owned by whoever holds its fence: where a lease has ended, it counts until another one claims the run.
function R.fenced(q, run)
  return run and run.fence == q.a.fence and run.id == q.a.run
end

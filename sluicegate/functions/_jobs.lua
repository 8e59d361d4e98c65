-- Jobs and their containers: the only code that moves a job from one state to another (contract §4).
--
-- One hash, job:{id}, is the job, its decision and its ledger entry: the id is the idempotency key. A refusal is such a
-- hash, too, in the state `refused`, which is no job's state. Every field is at most 64 bytes long, so the hash stays one
-- small block; the payload is in payload:{id}. A field that would hold its first value is left out.

-- What may follow what; sluicegate/job.py MOVES is the same table, and a test compares them.
local JOB_MOVES = {
  ready = { running = 1, expired = 1 },
  delayed = { ready = 1, expired = 1 },
  running = { ready = 1, delayed = 1, unknown = 1, blocked = 1, succeeded = 1, failed = 1, expired = 1 },
  unknown = { ready = 1, delayed = 1, succeeded = 1, failed = 1, expired = 1, blocked = 1 },
  blocked = { ready = 1, succeeded = 1, failed = 1, expired = 1 },
}

local FINAL = { succeeded = true, failed = true, expired = true }

-- What a repeated call of a job's class does. Of a class that the contract declares no more nobody says so any more, and
-- it may have been unsafe; sluicegate/job.py has the same.
function J.effects(q, class)
  local declared = q.s and q.s.classes[class]
  if declared then return declared.effects end
  return class == OTHER and 'keyed' or 'unsafe'
end

function J.key(q, id)
  return q.p .. 'job:' .. id
end

function J.payload_key(q, id)
  return q.p .. 'payload:' .. id
end

-- The job as stored, or nil where there is none, or no whole one; its numbers are numbers.
function J.read(q, id)
  local flat = redis.pcall('HGETALL', J.key(q, id))
  -- With room for what a job has in its life: a table that has to grow costs as much as a write.
  local job = { id = id, state = nil, class = nil, cost = nil, deadline = nil, fp = nil, admitted_at = nil, rev = nil,
    eligible = nil, attempt = nil, retries = nil, fence = nil, losses = nil, canary = nil, worker = nil, started_at = nil,
    lease_end = nil, epoch = nil, window = nil, intent = nil, intent_worker = nil, intent_attempt = nil,
    intent_fence = nil, ended_at = nil, cause = nil, settled = nil, also = nil, settled_in = nil }
  for i = 1, #flat, 2 do job[flat[i]] = flat[i + 1] end -- an error has no entries
  -- Without its class it is in no index that could be named, and would end every call that comes upon it.
  if not job.state or not job.class or job.state == 'refused' then return nil end
  job.id = id
  job.cost = job.cost or '-'
  job.deadline = tonumber(job.deadline) or 0
  job.attempt = tonumber(job.attempt) or 0
  job.retries = tonumber(job.retries) or 0
  job.eligible = tonumber(job.eligible or job.admitted_at) or 0
  job.fence = tonumber(job.fence) or 0
  job.losses = tonumber(job.losses) or 0
  job.rev = tonumber(job.rev) or 1
  job.canary = none(job.canary)
  return job
end

local FIRST_VALUES = { cost = '-', rev = '1', attempt = '0', retries = '0', losses = '0', fence = '0', canary = '', worker = '' }
local LEDGER_FIELDS = { intent = 'intent', intent_fence = 'fence', intent_worker = 'worker', intent_attempt = 'attempt',
  confirmed = 'confirmed', reference = 'reference' }

-- A record as readers get it: job, decision and ledger entry apart, nothing left out. nil where the id has none.
function J.shown(q, id)
  local job = hash_of(J.key(q, id))
  if not job.state then return nil end
  local decision = { job_id = id, fp = job.fp or '', accepted = job.state == 'refused' and '0' or '1',
    reason = job.reason or '', retry_at = job.retry_at or '0', at = job.decided_at or job.admitted_at or '0' }
  if job.state == 'refused' then return { decision = decision } end
  local ledger = {}
  for field, name in pairs(LEDGER_FIELDS) do
    ledger[name] = job[field]
    job[field] = nil
  end
  for field, value in pairs(FIRST_VALUES) do job[field] = job[field] or value end
  job.eligible = job.eligible or job.admitted_at
  job.key, job.declared, job.fp = id, job.declared or job.class, nil
  return { job = job, payload = text_of(J.payload_key(q, id)) or '', ledger = ledger, decision = decision }
end

-- Without its list of pairs a queue would lose sight of every job it holds: those of the contract are looked for.
local function pairs_found(q)
  local names, costs, p = {}, { '-' }, q.p
  if not q.s then return names end
  for cost in pairs(q.s.cost_classes) do costs[#costs + 1] = cost end
  local function look(class)
    for _, cost in ipairs(costs) do
      local name = class .. ':' .. cost
      if redis.call('EXISTS', p .. 'queue:ready:' .. name, p .. 'queue:delayed:' .. class, p .. 'running:' .. class) > 0 then
        names[#names + 1] = name
      end
    end
  end
  for class in pairs(q.s.classes) do look(class) end
  look(OTHER)
  return names
end

-- Every pair of class and cost class that a job was ever admitted under: what index there may be. All calls share what
-- this gives as long as the names stay the same, so nobody may change it.
function J.shared_pairs(q)
  if q.shared_pairs then return q.shared_pairs end
  local names = rows_of('SMEMBERS', q.p .. 'queue:pairs')
  local known, text = known_of(q), table.concat(names, ' ')
  if #names == 0 then
    names, q.pairs_lost = pairs_found(q), true
  elseif known.pairs_text == text then
    q.shared_pairs = known.pairs
    return known.pairs
  end
  local found = { all = {}, by_name = {} }
  -- In one order on every server: among heads of the same age the first counts.
  table.sort(names)
  for _, name in ipairs(names) do
    local class, cost = string.match(name, '^([^:]+):([^:]+)$')
    if class then
      found.by_name[name] = { name = name, class = class, cost = cost, fifo = q.p .. 'queue:fifo:' .. name }
      found.all[#found.all + 1] = found.by_name[name]
    end
  end
  known.pairs_text, known.pairs = text, found -- of a list that was lost, nothing is looked up again
  q.shared_pairs = found
  return found
end

-- The same, for this call alone to keep what it finds with each.
function J.pairs(q)
  if q.pairs then return q.pairs end
  q.pairs = {}
  for i, pair in ipairs(J.shared_pairs(q).all) do
    q.pairs[i] = { name = pair.name, class = pair.class, cost = pair.cost }
  end
  return q.pairs
end

-- The classes of those pairs, each once.
function J.classes(q)
  local found, classes = {}, {}
  for _, pair in ipairs(J.pairs(q)) do
    if not found[pair.class] then
      found[pair.class] = true
      classes[#classes + 1] = pair.class
    end
  end
  return classes
end

-- See to it that a pair, `{class}:{cost class}`, is among them.
function J.know_pair(q, name)
  local found = J.shared_pairs(q)
  if q.pairs_lost then
    for _, pair in ipairs(found.all) do put('SADD', q.p .. 'queue:pairs', pair.name) end
    q.pairs_lost = false
  end
  if found.by_name[name] then return end
  put('SADD', q.p .. 'queue:pairs', name)
  q.shared_pairs, q.pairs = nil, nil -- read again
end

-- Removal from a list is O(N): the head is near in admission order, and anywhere by deadline.
local MOST_LISTED, MOST_PASSED = 20000, 100000

function J.keeps_list(q)
  return q.s.max_pending <= (q.s.dispatch == 'edf' and 2000 or MOST_LISTED)
end

-- How many jobs from anywhere in the list one call may take: a removal passes all that stand before its job.
function J.removals(q)
  local listed = J.keeps_list(q) and redis.call('LLEN', q.p .. 'queue:pending') or 0
  return math.max(1, math.floor(MOST_PASSED / math.max(1, listed)))
end

-- Make the view for people again from the indexes, or take it away: another contract may keep it or not. Of more jobs
-- than it may hold it is not made again, which would take seconds: it holds those that come from now on.
function J.list_anew(q)
  redis.call('DEL', q.p .. 'queue:pending')
  if not J.keeps_list(q) or F.backlog(q) > MOST_LISTED then return end
  local ready = {}
  for _, pair in ipairs(J.pairs(q)) do
    local flat = redis.call('ZRANGE', q.p .. 'queue:fifo:' .. pair.name, 0, -1, 'WITHSCORES')
    for i = 1, #flat, 2 do ready[#ready + 1] = { id = flat[i], since = tonumber(flat[i + 1]) } end
  end
  table.sort(ready, function(a, b) return a.since < b.since or (a.since == b.since and a.id < b.id) end)
  for _, job in ipairs(ready) do redis.call('RPUSH', q.p .. 'queue:pending', job.id) end
end

-- The names of the containers of a class and a cost class, made once a call; running_cost is nil without one.
function J.keys(q, class, cost)
  q.keys = q.keys or {}
  local of_class = q.keys[class]
  if not of_class then
    of_class = {}
    q.keys[class] = of_class
  end
  local keys = of_class[cost]
  if not keys then
    local p, pair = q.p, class .. ':' .. cost
    keys = { listed = p .. 'queue:pending', leases = p .. 'queue:leases', fifo = p .. 'queue:fifo:' .. pair,
      ready = p .. 'queue:ready:' .. pair, running = p .. 'running:' .. class,
      running_cost = cost ~= '-' and p .. 'running:cost:' .. cost or nil }
    of_class[cost] = keys
  end
  return keys
end

-- The containers of a state that is about to be left.
function J.leave(q, job)
  local p, id, class = q.p, job.id, job.class
  if job.state == 'ready' then
    if job.canary then
      index(q, 'ZREM', p .. 'queue:canary', id)
      return
    end
    local keys = J.keys(q, class, job.cost)
    if J.keeps_list(q) then index(q, 'LREM', keys.listed, '1', id) end
    index(q, 'ZREM', keys.fifo, id)
    index(q, 'ZREM', keys.ready, id)
  elseif job.state == 'delayed' then
    index(q, 'ZREM', p .. 'queue:delayed', id)
    index(q, 'ZREM', p .. 'queue:delayed:' .. class, id)
    if job.cost ~= '-' then index(q, 'ZREM', p .. 'queue:delayed:cost:' .. job.cost, id) end
  elseif job.state == 'running' then
    local keys = J.keys(q, class, job.cost)
    index(q, 'ZREM', keys.leases, id)
    if job.canary then
      index(q, 'ZREM', p .. 'running:canary', id)
    else
      index(q, 'ZREM', keys.running, id)
      if keys.running_cost then index(q, 'ZREM', keys.running_cost, id) end
    end
  else
    index(q, 'ZREM', p .. 'queue:' .. job.state, id)
    index(q, 'ZREM', p .. 'queue:' .. job.state .. ':' .. class, id)
  end
end

-- The containers of the state entered; head puts a requeued job first in the view for people. Each unfinished job but a
-- canary is in one index by deadline: those of the ready pairs, of the delayed or of the running of its class.
function J.enter(q, job, head)
  local p, id, class = q.p, job.id, job.class
  if job.state == 'ready' then
    q.woken = q.woken + 1
    if job.canary then
      index(q, 'ZADD', p .. 'queue:canary', job.eligible, id)
      return
    end
    local keys = J.keys(q, class, job.cost)
    if J.keeps_list(q) then index(q, head and 'LPUSH' or 'RPUSH', keys.listed, id) end
    index(q, 'ZADD', keys.fifo, job.eligible, id)
    index(q, 'ZADD', keys.ready, job.deadline, id)
  elseif job.state == 'delayed' then
    index(q, 'ZADD', p .. 'queue:delayed', job.ready_at, id)
    index(q, 'ZADD', p .. 'queue:delayed:' .. class, job.deadline, id)
    -- Pending counts delayed, for a cost class as well; without one there is no limit to count for.
    if job.cost ~= '-' then index(q, 'ZADD', p .. 'queue:delayed:cost:' .. job.cost, job.ready_at, id) end
  elseif job.state == 'running' then
    local keys = J.keys(q, class, job.cost)
    index(q, 'ZADD', keys.leases, job.lease_end, id)
    if job.canary then
      index(q, 'ZADD', p .. 'running:canary', job.lease_end, id)
    else
      index(q, 'ZADD', keys.running, job.deadline, id)
      if keys.running_cost then index(q, 'ZADD', keys.running_cost, job.deadline, id) end
    end
  elseif not FINAL[job.state] then
    index(q, 'ZADD', p .. 'queue:' .. job.state, q.now, id)
    index(q, 'ZADD', p .. 'queue:' .. job.state .. ':' .. class, q.now, id)
  end
end

-- Take a job that is not in a state out of all the containers of that state: one left behind would hide in a figure.
local function drop_entries(q, id, state)
  local p = q.p
  if state == 'ready' and J.keeps_list(q) then redis.call('LREM', p .. 'queue:pending', 0, id) end
  for _, pair in ipairs(J.pairs(q)) do
    if state == 'ready' then
      index(q, 'ZREM', p .. 'queue:fifo:' .. pair.name, id)
      index(q, 'ZREM', p .. 'queue:ready:' .. pair.name, id)
    elseif state == 'delayed' then
      index(q, 'ZREM', p .. 'queue:delayed:' .. pair.class, id)
      index(q, 'ZREM', p .. 'queue:delayed:cost:' .. pair.cost, id)
    elseif state == 'running' then
      index(q, 'ZREM', p .. 'running:' .. pair.class, id)
      index(q, 'ZREM', p .. 'running:cost:' .. pair.cost, id)
    end
  end
  if state == 'delayed' then index(q, 'ZREM', p .. 'queue:delayed', id) end
  if state == 'running' then
    index(q, 'ZREM', p .. 'queue:leases', id)
    index(q, 'ZREM', p .. 'running:canary', id)
  end
end

-- The job that a container of this state names, or nil where its record is gone, not whole, or says otherwise: somebody's
-- hand was in it. Then its entries go, noted in reconcile:log, for one such entry would stop the whole queue.
function J.named(q, key, id, state)
  local job = J.read(q, id)
  if job and job.state == state then return job end
  index(q, 'ZREM', key, id)
  drop_entries(q, id, state)
  count(q, 'entries_dropped')
  put('XADD', q.p .. 'reconcile:log', 'MAXLEN', '~', '10000', '*', 'at', digits(q.now), 'kind', 'entry_dropped', 'job', id,
    'note', key .. ' named it, its record is ' .. (job and 'in state ' .. job.state or 'gone or not whole'))
  return nil
end

local function put_fields(flat, job, fields)
  for name, value in pairs(fields) do
    job[name] = value
    flat[#flat + 1] = name
    flat[#flat + 1] = type(value) == 'number' and digits(value) or value
  end
end

-- Move a job to another state with these fields.
function J.move(q, job, state, fields, head)
  local flat = {}
  put_fields(flat, job, fields)
  J.move_with(q, job, state, flat, head)
end

-- The same with the fields as texts, `name value …`, whose values the job has already; job.also holds fields that its next
-- move writes as well, and job.settled_in gives the field `settled` for the state that is entered.
function J.move_with(q, job, state, flat, head)
  if not (JOB_MOVES[job.state] and JOB_MOVES[job.state][state]) then
    error('job ' .. job.id .. ' cannot move from ' .. job.state .. ' to ' .. state)
  end
  if job.state == 'unknown' then count(q, 'unknown_left') end
  J.leave(q, job)
  job.state, job.rev = state, job.rev + 1
  if job.also then put_fields(flat, job, job.also) end
  if job.settled_in then
    flat[#flat + 1], flat[#flat + 2] = 'settled', job.settled_in(state)
  end
  job.also, job.settled_in = nil, nil
  redis.call('HSET', J.key(q, job.id), 'state', state, 'rev', digits(job.rev), unpack(flat))
  J.enter(q, job, head)
end

-- Change a job where it is.
function J.write(q, job, fields)
  job.rev = job.rev + 1
  local flat = { 'rev', digits(job.rev) }
  put_fields(flat, job, fields)
  redis.call('HSET', J.key(q, job.id), unpack(flat))
end

-- Let everything that belongs to a final job go after its retention.
function J.retain(q, job)
  q.retention = q.retention or digits(math.max(q.s.timings.final_retention_ms, 2 * J.longest_deadline(q)))
  redis.call('PEXPIRE', J.key(q, job.id), q.retention)
  redis.call('PEXPIRE', J.payload_key(q, job.id), q.retention)
end

function J.longest_deadline(q)
  local longest = 0
  for _, class in pairs(q.s.classes) do longest = math.max(longest, class.deadline_ms) end
  return longest
end

local DAY_MS = 86400000

-- Whether the first line of a day's list has been kept long enough; what is no line of ours has.
local function first_has_lapsed(q, key, kept_ms)
  local text = redis.call('LINDEX', key, 0)
  if not text then return false end
  local whole, line = pcall(cjson.decode, text)
  local at = whole and type(line) == 'table' and tonumber(line.at_ms)
  return not at or q.now - at > kept_ms
end

-- A list that is written to all the time never lapses as a whole. It goes twice as fast at its head as it grows.
local function drop_lapsed_failures(q, key)
  local kept_ms = q.s.timings.failed_retention_ms
  if kept_ms >= DAY_MS then return end -- no line of a day's list is older than that
  for _ = 1, 2 do
    if not first_has_lapsed(q, key, kept_ms) then return end
    redis.call('LPOP', key)
  end
end

function J.record_failure(q, job, reason, cause)
  local key = q.p .. 'failed:' .. utc_date(q.now)
  put('RPUSH', key, cjson.encode({ job_id = job.id, reason = reason, cause = cause, queue_class = job.class,
    attempt = job.attempt, deadline_slack_s = (job.deadline - q.now) / 1000, idempotency_key = job.id,
    at_ms = q.now }))
  redis.call('PEXPIRE', key, digits(q.s.timings.failed_retention_ms))
  drop_lapsed_failures(q, key)
end

-- End a job: succeeded, failed or expired. Every end that is not success has its line in failed:{date}.
function J.finish(q, job, state, cause)
  local was = job.state
  job.ended_at, job.cause = q.now, cause or ''
  -- With room for what the move adds: a table that has to grow costs as much as a write.
  J.move_with(q, job, state, { 'cause', job.cause, 'ended_at', q.now_text or digits(q.now), nil, nil, nil, nil })
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
  J.write(q, job, { state = state, cause = cause, ended_at = q.now })
  J.retain(q, job)
end

function J.event(q, job)
  return { job_id = job.id, queue_class = job.class, attempt = job.attempt, key = job.id,
    deadline_slack_s = (job.deadline - q.now) / 1000, canary = job.canary }
end

-- A retry, a requeue or a job that was not executed becomes ready or delayed, or expires when too little is left: then
-- the cause says where the last call may have done its work all the same (called), for nobody will look again.
function J.again(q, job, delay_ms, head, called)
  local ready_at = q.now + math.max(0, delay_ms)
  if ready_at > job.deadline - q.s.timings.margin_ms then
    J.finish(q, job, 'expired', called and 'no_time_for_retry_call_may_have_happened' or 'no_time_for_retry')
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
  job.also = { losses = losses }
  if losses >= q.s.loss_budget then return J.block(q, job, 'poison') end
  count(q, 'unknown')
  J.move(q, job, 'unknown', { cause = cause })
  return 'unknown'
end

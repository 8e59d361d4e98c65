-- sweep {limit}: expire overdue ready and delayed jobs and find leases that ran out; at most `limit` (100) of each kind, and
-- fewer out of a long list.
-- A running job is ended only by its worker or its lease. -> {expired = [event], lost = [event + state], more}

-- A library has at most 200 local names, so those of this file end with it.
do

local function expire_due(q, key, state, due, limit, cause, expired)
  local ids = redis.call('ZRANGEBYSCORE', key, '-inf', due, 'LIMIT', 0, limit)
  for _, id in ipairs(ids) do
    local job = J.named(q, key, id, state)
    if job then
      expired[#expired + 1] = J.event(q, job)
      J.finish(q, job, 'expired', cause)
    end
  end
  return #ids
end

-- End those whose deadline is before `due`, at most `limit` of them all. -> their events, whether there may be more
function J.expire_ready(q, due, limit, cause)
  local expired, left = {}, limit
  local function expire(key, state)
    left = left - expire_due(q, key, state, '(' .. digits(due), left, cause, expired)
  end
  for _, pair in ipairs(J.pairs(q)) do expire(q.p .. 'queue:ready:' .. pair.name, 'ready') end
  for _, class in ipairs(J.classes(q)) do expire(q.p .. 'queue:delayed:' .. class, 'delayed') end
  return expired, left == 0
end

-- How many would be expired so, by class; nothing is touched.
function J.expiring(q, due)
  local counts, before = {}, '(' .. digits(due)
  local function add(class, key)
    local n = redis.call('ZCOUNT', key, '-inf', before)
    if n > 0 then counts[class] = (counts[class] or 0) + n end
  end
  for _, pair in ipairs(J.pairs(q)) do add(pair.class, q.p .. 'queue:ready:' .. pair.name) end
  for _, class in ipairs(J.classes(q)) do add(class, q.p .. 'queue:delayed:' .. class) end
  return counts
end

-- What a look takes in of one index; of a longer one each sweep looks at another part, by the time.
local RUNNING_LOOKED_AT, RUNNING_PART_MS = 200, 100

function J.running_part(q, key)
  local count = redis.call('ZCARD', key)
  if count <= RUNNING_LOOKED_AT then return redis.call('ZRANGE', key, 0, -1) end
  local start = math.floor(q.now / RUNNING_PART_MS) * RUNNING_LOOKED_AT % count
  return redis.call('ZRANGE', key, start, start + RUNNING_LOOKED_AT - 1)
end

-- Go through an index of running jobs: an entry whose record says otherwise is dropped, one whose lease entry somebody
-- took away gets it back as its record has it, or it would run for ever: the next lines find it once that has passed.
local function mend_running(q, key)
  for _, id in ipairs(J.running_part(q, key)) do
    if not redis.call('ZSCORE', q.p .. 'queue:leases', id) then
      local job = J.named(q, key, id, 'running')
      if job then
        redis.call('ZADD', q.p .. 'queue:leases', digits(tonumber(job.lease_end) or 0), id)
        put('XADD', q.p .. 'reconcile:log', 'MAXLEN', '~', '10000', '*', 'at', digits(q.now), 'kind', 'lease_put_back',
          'job', id, 'note', 'it was running, and queue:leases did not name it')
      end
    end
  end
end

-- The leases and the indexes of running jobs name the same jobs: nearly always the numbers say so.
local function check_running(q)
  local indexes, counted = { q.p .. 'running:canary' }, 0
  for _, class in ipairs(J.classes(q)) do indexes[#indexes + 1] = q.p .. 'running:' .. class end
  for _, key in ipairs(indexes) do counted = counted + redis.call('ZCARD', key) end
  if counted == redis.call('ZCARD', q.p .. 'queue:leases') then return end
  for cost in pairs(q.s.cost_classes) do indexes[#indexes + 1] = q.p .. 'running:cost:' .. cost end
  for _, key in ipairs(indexes) do mend_running(q, key) end
end

-- Refusals lapse by themselves, and here their names go; after a night without a sweep there may be a million.
local MOST_FORGOTTEN = 1000

local function forget_refusals(q)
  local key = q.p .. 'queue:refusals'
  local lapsed = math.min(redis.call('ZCOUNT', key, '-inf', '(' .. digits(q.now)), MOST_FORGOTTEN)
  if lapsed > 0 then redis.call('ZREMRANGEBYRANK', key, 0, lapsed - 1) end
end

function commands.sweep(q)
  if not q.s then return { expired = {}, lost = {}, more = false } end
  local limit = math.min(q.a.limit or 100, 100)
  local expired, more = J.expire_ready(q, q.now + q.s.timings.margin_ms, math.min(limit, J.removals(q)), 'deadline')
  check_running(q)
  local lost = {}
  local ids = redis.call('ZRANGEBYSCORE', q.p .. 'queue:leases', '-inf', q.now, 'LIMIT', 0, limit)
  for _, id in ipairs(ids) do
    local job = J.named(q, q.p .. 'queue:leases', id, 'running')
    if job then
      local event = J.event(q, job)
      event.worker = job.worker
      event.state = J.lose(q, job, 'lease_expired')
      lost[#lost + 1] = event
    end
  end
  forget_refusals(q)
  return { expired = expired, lost = lost, more = more or #ids == limit }
end

-- promote {limit}: delayed jobs whose time has come become ready, eligible since that time. -> {promoted}
function commands.promote(q)
  if not q.s then return { promoted = 0 } end
  local ids = redis.call('ZRANGEBYSCORE', q.p .. 'queue:delayed', '-inf', q.now, 'LIMIT', 0, math.min(q.a.limit or 100, 100))
  for _, id in ipairs(ids) do
    local job = J.named(q, q.p .. 'queue:delayed', id, 'delayed')
    if job then J.move(q, job, 'ready', { eligible = job.eligible }) end
  end
  return { promoted = #ids }
end

-- reconcile {id, outcome = succeeded | failed | retry | block, actor, reason, source, fence}: the only way out of unknown
-- and blocked; blocked only by a person. Each is written to reconcile:log. Who judged from a look at the job gives the
-- fence seen: a job that has been started since is another question. -> {answer = moved | refused | gone | stale, state}
function commands.reconcile(q)
  local job = q.s and J.read(q, q.a.id)
  if not job then return { answer = 'gone', state = 'gone' } end
  local person = q.a.source == 'person'
  if job.state ~= 'unknown' and not (job.state == 'blocked' and person) then
    return { answer = 'refused', state = job.state }
  end
  if q.a.fence and q.a.fence ~= digits(job.fence) then return { answer = 'stale', state = job.state } end
  if job.state == 'blocked' and q.a.outcome == 'block' then return { answer = 'refused', state = job.state } end
  put('XADD', q.p .. 'reconcile:log', 'MAXLEN', '~', '10000', '*', 'at', digits(q.now), 'kind', 'reconcile', 'job',
    job.id, 'key', job.id, 'from', job.state, 'outcome', q.a.outcome, 'source', q.a.source, 'actor', q.a.actor, 'note',
    q.a.reason)
  A.write(q, 'reconcile', 'job', job.id, 'from', job.state, 'outcome', q.a.outcome, 'source', q.a.source, 'actor',
    q.a.actor, 'note', q.a.reason)
  if job.state == 'unknown' then count(q, 'unknown_reconciled') end
  local state
  if q.a.outcome == 'retry' then
    -- Only the decision about a blocked job gives it its budgets back: a loss stays counted, or poison would never show.
    if job.state == 'blocked' then job.also = { losses = 0, retries = 0 } end
    -- Only the provider can say that it was not done: a ledger, or a person, says that a repeat is safe.
    local fence = digits(job.fence)
    local called = q.a.source ~= 'http' and (job.intent_fence == fence or job.restored_fence == fence)
    state = J.again(q, job, 0, false, called)
  elseif q.a.outcome == 'block' then
    state = J.block(q, job, q.a.reason)
  else
    J.finish(q, job, q.a.outcome, 'reconciled')
    state = q.a.outcome
  end
  return { answer = 'moved', state = state }
end

-- duplicate {key, note, actor}: the provider or the ledger shows two effects for one key: a confirmed duplicate.
-- Before a queue is opened there is none that it could belong to. -> {answer = ok | unreadable}
function commands.duplicate(q)
  if G.read(q).stored == 'uninitialised' then return { answer = 'unreadable' } end
  J.confirm_duplicate(q, q.a.key, q.a.actor .. ': ' .. q.a.note)
  return { answer = 'ok' }
end

-- job {id}: one job as it is. Read-only. -> {found, job, payload, ledger, decision}
function commands.job(q)
  local shown = J.shown(q, q.a.id)
  if not shown or not shown.job then return { found = false } end
  shown.found = true
  return shown
end
readonly.job = true

-- The ready of all pairs, oldest first.
local function oldest_ready(q, limit)
  local found = {}
  for _, key in ipairs(F.ages(q)) do
    local flat = redis.call('ZRANGE', key, 0, limit - 1, 'WITHSCORES')
    for i = 1, #flat, 2 do found[#found + 1] = { id = flat[i], since = tonumber(flat[i + 1]) } end
  end
  table.sort(found, function(a, b) return a.since < b.since or (a.since == b.since and a.id < b.id) end)
  local ids = {}
  for i = 1, math.min(limit, #found) do ids[i] = found[i].id end
  return ids
end

-- list {state, limit}: ids in a state's container, oldest first. Read-only. -> {ids}
function commands.list(q)
  local containers = { delayed = 'queue:delayed', running = 'queue:leases', unknown = 'queue:unknown',
    blocked = 'queue:blocked', canary = 'queue:canary' }
  local limit = q.a.limit or 100
  if not containers[q.a.state] then return { ids = oldest_ready(q, limit) } end
  return { ids = redis.call('ZRANGE', q.p .. containers[q.a.state], 0, limit - 1) }
end
readonly.list = true

end

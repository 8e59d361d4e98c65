-- What of a job and of a refusal travels in a snapshot, and how it is put back. Beside _jobs.lua and admit.lua the only
-- code that knows which keys and fields they are made of.

local P = {}

-- Whatever changes a job changes its version; a renewed lease is no change, a recorded intent is one.
local function version_of(state, rev, fence, intent)
  if state == 'running' then return 'running:' .. (fence or '') .. ':' .. (intent or '') end
  return state .. ':' .. (rev or '1')
end

-- The version of a job, or nil for what no snapshot holds: no job, final, or a canary of a run.
function P.version(q, id)
  local h = redis.call('HMGET', J.key(q, id), 'state', 'rev', 'fence', 'intent_fence', 'canary')
  local state = h[1]
  if not state or state == 'refused' or FINAL[state] or none(h[5] or '') then return nil end
  return version_of(state, h[2], h[3], h[4])
end

-- A job with all that belongs to it; nil without one.
function P.row(q, id)
  local row = J.shown(q, id)
  if not row or not row.job then return nil end
  row.id, row.version = id, version_of(row.job.state, row.job.rev, row.job.fence, row.ledger.fence)
  return row
end

local CONTAINER_OF = { delayed = 'queue:delayed', running = 'queue:leases', unknown = 'queue:unknown',
  blocked = 'queue:blocked' }

-- The score in the container of a job's state, nil for a final one.
function P.score(q, row)
  local name = CONTAINER_OF[row.job.state]
  if row.job.state == 'ready' then name = 'queue:fifo:' .. row.job.class .. ':' .. row.job.cost end
  return name and (redis.call('ZSCORE', q.p .. name, row.id) or nil)
end

function P.travels(row)
  return row and not FINAL[row.job.state] and not none(row.job.canary)
end

-- The stored decision for a key, where it is a refusal.
function P.refusal(q, key)
  local shown = J.shown(q, key)
  if not shown or shown.job then return nil end
  return shown.decision
end

local function hset(key, map)
  local flat = {}
  for name, value in pairs(map) do
    flat[#flat + 1] = name
    flat[#flat + 1] = value
  end
  redis.call('HSET', key, unpack(flat))
end

-- Where a job goes: nobody knows what became of one that ran. suspect: nor of a pending one that is unsafe to repeat.
local function state_again(q, job, suspect)
  if job.state == 'running' then return 'unknown' end
  local pending = job.state == 'ready' or job.state == 'delayed'
  if suspect and pending and J.effects(q, job.class) == 'unsafe' then return 'unknown' end
  return job.state
end

-- Put a job back under a new fence; a job that is there stays. A refusal gives way: its caller was told to come back, and
-- somebody else that the job is accepted. dry: only say so.
-- -> kept | the state it came back in
function P.put_back(q, row, suspect, dry)
  local id, job, p = row.id, row.job, q.p
  local refused = redis.pcall('HGET', J.key(q, id), 'state') == 'refused'
  if not refused and redis.call('EXISTS', J.key(q, id)) == 1 then return 'kept' end
  local state = state_again(q, job, suspect)
  if dry then return state end
  if refused then
    redis.call('DEL', J.key(q, id))
    index(q, 'ZREM', p .. 'queue:refusals', id)
  end
  local class, was = job.class, job.state
  local fence = digits(math.max((tonumber(job.fence) or 0) + 1, q.us))
  if state ~= was then job.cause = 'restored' end
  job.state, job.fence, job.worker = state, fence, ''
  job.rev = digits((tonumber(job.rev) or 0) + 1)
  -- As long as this is its fence it has not started since: the ledger may have missed what it did after the snapshot.
  job.restored_fence, job.restored_state, job.restored_at = fence, was, digits(q.now)
  hset(J.key(q, id), J.stored(row))
  redis.call('SET', J.payload_key(q, id), row.payload)
  J.know_pair(q, class, job.cost)
  local deadline = tonumber(job.deadline)
  J.enter(q, { id = id, state = state, class = class, cost = job.cost, deadline = deadline,
    eligible = tonumber(job.eligible), ready_at = tonumber(job.ready_at) })
  if state == was and (state == 'unknown' or state == 'blocked') then
    index(q, 'ZADD', p .. 'queue:' .. state, row.score, id)
    index(q, 'ZADD', p .. 'queue:' .. state .. ':' .. class, row.score, id)
  end
  return state
end

-- When a refusal's record goes: when it was to go, whatever contract is in force now. Files of before do not tell.
local function refusal_end(q, row)
  local ends_at, decision = tonumber(row.ends_at), row.decision
  if ends_at then return ends_at end
  return math.max(tonumber(decision.retry_at) or 0, tonumber(decision.at) or 0) + q.s.timings.refusal_retention_ms
end

-- Put a refusal back unless the key has a decision already, or the refusal has lapsed. -> kept | lapsed | refusal
function P.put_refusal_back(q, row, dry)
  local key, decision = J.key(q, row.key), row.decision
  if redis.call('EXISTS', key) == 1 then return 'kept' end
  local left = refusal_end(q, row) - q.now
  if left <= 0 then return 'lapsed' end
  if dry then return 'refusal' end
  redis.call('HSET', key, 'state', 'refused', 'fp', decision.fp, 'reason', decision.reason, 'retry_at', decision.retry_at,
    'decided_at', decision.at)
  redis.call('PEXPIRE', key, digits(left))
  index(q, 'ZADD', q.p .. 'queue:refusals', q.now + left, row.key)
  return 'refusal'
end

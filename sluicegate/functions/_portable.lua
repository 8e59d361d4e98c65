-- What of a job and of a refusal travels in a snapshot, and how it is put back. Which fields they are made of is known to
-- _jobs.lua and admit.lua, here, and to sluicegate/snapshot_records.py, snapshot_checked.py and restore.py.

local P = {}

-- A job with all that belongs to it, for the command `records`; nil without one.
function P.row(q, id)
  local row = J.shown(q, id)
  if not row or not row.job then return nil end
  row.id = id
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

-- The stored decision for a key, where it is a refusal; nothing of one that holds what no answer can carry, and no snapshot.
function P.refusal(q, key)
  local shown = J.shown(q, key)
  if not shown or shown.job then return nil end
  for _, text in pairs(shown.decision) do
    if string.find(text, '[\128-\255]') then return {} end
  end
  return shown.decision
end

-- Where a job goes: nobody knows what became of one that ran. suspect: nor of a pending one that is unsafe to repeat.
local function state_again(q, state, class, suspect)
  if state == 'running' then return 'unknown' end
  local pending = state == 'ready' or state == 'delayed'
  if suspect and pending and J.effects(q, class) == 'unsafe' then return 'unknown' end
  return state
end

-- sluicegate/restore.py writes them. A job's words: id payload class cost state deadline place score fence rev n, then n
-- words, the other fields of its record with their values. place is what a pending one is sorted by. A refusal's words:
-- key fp reason retry_at at ends_at.
P.JOB_WORDS, P.REFUSAL_WORDS = 11, 6

-- What stands under these ids: {id = 'refused' | 'kept'}.
function P.there(q, ids)
  local keys, there = {}, {}
  for n, id in ipairs(ids) do keys[n] = J.key(q, id) end
  if #keys == 0 or redis.call('EXISTS', unpack(keys)) == 0 then return there end
  for n, id in ipairs(ids) do
    if redis.call('EXISTS', keys[n]) == 1 then
      there[id] = redis.pcall('HGET', keys[n], 'state') == 'refused' and 'refused' or 'kept'
    end
  end
  return there
end

-- One table for all jobs of a call: each is done with before the next.
local function enter_again(q, v, i, state)
  local id, class, was, job = v[i], v[i + 2], v[i + 4], q.entering
  job.id, job.state, job.class, job.cost, job.deadline = id, state, class, v[i + 3], v[i + 5]
  job.eligible, job.ready_at = v[i + 6], v[i + 6]
  J.know_pair(q, class .. ':' .. job.cost)
  J.enter(q, job)
  if state == was and (state == 'unknown' or state == 'blocked') then
    index(q, 'ZADD', q.p .. 'queue:' .. state, v[i + 7], id)
    index(q, 'ZADD', q.p .. 'queue:' .. state .. ':' .. class, v[i + 7], id)
  end
end

-- Have ready what all jobs of a call share.
function P.begin(q)
  q.entering = {}
  q.fence, q.restored_at = digits(q.us), digits(q.now)
end

-- Write the payloads of the jobs that come back, before their records: whatever ends the call, no job is there without its
-- payload, for the same restore again would take it for one that needs nothing.
function P.put_payloads_back(q, v, starts, there)
  local words, met = {}, {}
  for _, i in ipairs(starts) do
    local id = v[i + 1]
    if v[i] == 'job' and there[id] ~= 'kept' and not met[id] then
      met[id] = true
      words[#words + 1], words[#words + 2] = J.payload_key(q, id), v[i + 2]
    end
  end
  if #words > 0 then redis.call('MSET', unpack(words)) end
end

-- Put the job back whose words begin at v[i], under a new fence; a job that is there stays. A refusal gives way: its caller
-- was told to come back, and somebody else that the job is accepted. dry: only say so.
-- -> kept | the state it came back in
function P.put_back(q, v, i, there, suspect, dry)
  local id, class, was = v[i], v[i + 2], v[i + 4]
  local stands = there[id]
  if stands == 'kept' then return 'kept' end
  there[id] = 'kept'
  local state = state_again(q, was, class, suspect)
  if dry then return state end
  local key = J.key(q, id)
  if stands == 'refused' then
    redis.call('DEL', key)
    index(q, 'ZREM', q.p .. 'queue:refusals', id)
  end
  local fence = q.fence
  if v[i + 8] ~= '0' then fence = digits(math.max(tonumber(v[i + 8]) + 1, q.us)) end
  -- As long as this is its fence it has not started since: the ledger may have missed what it did after the snapshot.
  redis.call('HSET', key, 'state', state, 'class', class, 'deadline', v[i + 5], 'rev',
    digits(v[i + 9] + 1), 'fence', fence, 'restored_fence', fence, 'restored_state', was,
    'restored_at', q.restored_at, unpack(v, i + P.JOB_WORDS, i + P.JOB_WORDS - 1 + v[i + 10]))
  if state ~= was then redis.call('HSET', key, 'cause', 'restored') end
  enter_again(q, v, i, state)
  return state
end

-- When a refusal's record goes: when it was to go, whatever contract is in force now. Files of before do not tell.
local function refusal_end(q, retry_at, at, ends_at)
  if tonumber(ends_at) then return tonumber(ends_at) end
  return math.max(tonumber(retry_at) or 0, tonumber(at) or 0) + q.s.timings.refusal_retention_ms
end

-- Put the refusal back whose words begin at v[i], unless the key has a decision already, or the refusal has lapsed.
-- -> kept | lapsed | refusal
function P.put_refusal_back(q, v, i, there, dry)
  local id, retry_at, at = v[i], v[i + 3], v[i + 4]
  if there[id] then return 'kept' end
  local left = refusal_end(q, retry_at, at, v[i + 5]) - q.now
  if left <= 0 then return 'lapsed' end
  there[id] = 'refused'
  if dry then return 'refusal' end
  local key = J.key(q, id)
  redis.call('HSET', key, 'state', 'refused', 'fp', v[i + 1], 'reason', v[i + 2], 'retry_at', retry_at, 'decided_at', at)
  redis.call('PEXPIRE', key, digits(left))
  index(q, 'ZADD', q.p .. 'queue:refusals', q.now + left, id)
  return 'refusal'
end

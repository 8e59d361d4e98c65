-- What a snapshot is made of (contract §7.2), read in ranges, so that no call holds the server up: ids come from here, and
-- each record by a plain command, as it is stored. What moves while the ranges are read shows in its version.

local CONTAINERS = { 'queue:delayed', 'queue:leases', 'queue:unknown', 'queue:blocked' }
local IDS_A_CALL, REFUSALS_A_CALL, BYTES_A_CALL = 500, 50, 262144

-- Those, and the ready of each pair of class and cost class.
local function container_names(q)
  local names = {}
  for _, pair in ipairs(J.pairs(q)) do names[#names + 1] = 'queue:fifo:' .. pair.name end
  for _, name in ipairs(CONTAINERS) do names[#names + 1] = name end
  return names
end

-- snapshot {}: everything but jobs and refusals, of this instant. Read-only.
-- -> {at, epoch, drain_state, pin, digest, contract, confirmed, acknowledged, kill, endpoint, containers = {name = count},
--     horizon, restoring}; the count of leases is without those of canaries; every refusal decided by `at` has lapsed by
--     `horizon`; restoring is '' or the restore that is not complete
function commands.snapshot(q)
  local g = G.read(q)
  local body = { at = q.now, epoch = digits(g.epoch), drain_state = G.effective(g), pin = G.effective_pin(g) or '',
    digest = q.digest or '', contract = redis.call('HGET', q.p .. 'queue:settings', 'contract') or '',
    confirmed = g.confirmed, acknowledged = g.acknowledged, kill = text_of(q.p .. 'kill') or '',
    endpoint = hash_of(q.p .. 'control:endpoint'), restoring = g.restoring or '', containers = {} }
  for _, name in ipairs(container_names(q)) do body.containers[name] = redis.call('ZCARD', q.p .. name) end
  body.containers['queue:leases'] = body.containers['queue:leases'] - redis.call('ZCARD', q.p .. 'running:canary')
  local last = redis.call('ZRANGE', q.p .. 'queue:refusals', '0', '0', 'REV', 'WITHSCORES')
  body.horizon = math.max(q.now, tonumber(last[2]) or 0)
  return body
end
readonly.snapshot = true

-- Walk a sorted set in ranges whatever moves meanwhile: what keeps its place between two calls is met at least once.
local function range_after(key, after, limit)
  local start = 0
  if after then
    local rank = redis.call('ZRANK', key, after.member)
    if rank and redis.call('ZSCORE', key, after.member) == after.score then
      start = rank + 1
    else
      start = redis.call('ZCOUNT', key, '-inf', '(' .. after.score)
    end
  end
  return redis.call('ZRANGE', key, start, start + limit - 1, 'WITHSCORES')
end

-- snapshot_ids container member score: the next ids of a container, the last two words '' at the beginning. Read-only.
-- -> id, score, for each; nothing at the end
function commands.snapshot_ids(q)
  local wanted, member, score = q.v[3], q.v[4], q.v[5]
  for _, name in ipairs(container_names(q)) do
    if name == wanted then
      return range_after(q.p .. name, member ~= '' and { member = member, score = score } or nil, IDS_A_CALL)
    end
  end
  return error('no container ' .. tostring(wanted))
end
readonly.snapshot_ids = true
hot.snapshot_ids = true

-- snapshot_refusals {after, horizon}: the next refusals that stand and lapse by `horizon`. Read-only.
-- -> {rows = [{key, decision, ends_at}], after}
function commands.snapshot_refusals(q)
  local flat = range_after(q.p .. 'queue:refusals', q.a.after, REFUSALS_A_CALL)
  local rows, after = {}, nil
  for i = 1, #flat, 2 do
    if tonumber(flat[i + 1]) > q.a.horizon then return { rows = rows } end
    local decision = P.refusal(q, flat[i])
    if decision then rows[#rows + 1] = { key = flat[i], decision = decision, ends_at = flat[i + 1] } end
    after = { member = flat[i], score = flat[i + 1] }
  end
  return { rows = rows, after = after }
end
readonly.snapshot_refusals = true

-- records {ids}: the records of the first of at most 100 jobs in any state, each with its decision and its ledger entry; of
-- large payloads a call gives fewer. Read-only.
-- -> {jobs = [{id, job, payload, decision, ledger, score}], looked = how many ids that is of}; a final one has no
-- score
function commands.records(q)
  local jobs, looked, bytes = {}, 0, 0
  for _, id in ipairs(q.a.ids) do
    local row = P.row(q, id)
    looked = looked + 1
    if row then
      row.score, bytes = P.score(q, row), bytes + #row.payload
      jobs[#jobs + 1] = row
    end
    if bytes >= BYTES_A_CALL then break end
  end
  return { jobs = jobs, looked = looked }
end
readonly.records = true

-- snapshot {}: ids with scores of every container, live refusals, settings digest and epoch, in one instant. Read-only.
-- -> {at, epoch, digest, containers = {name = [[id, score], …]}, refusals = [key], gate}
local CONTAINERS = { 'queue:enqueued', 'queue:delayed', 'queue:leases', 'queue:unknown', 'queue:blocked', 'queue:deadlines' }

function commands.snapshot(q)
  local g = G.read(q)
  local body = { at = q.now, epoch = digits(g.epoch), digest = settings_digest or '', containers = {},
    drain_state = G.effective(g), refusals = redis.call('ZRANGE', q.p .. 'queue:refusals', 0, -1) }
  for _, name in ipairs(CONTAINERS) do
    local flat, pairs_of = redis.call('ZRANGE', q.p .. name, 0, -1, 'WITHSCORES'), {}
    for i = 1, #flat, 2 do pairs_of[#pairs_of + 1] = { flat[i], flat[i + 1] } end
    body.containers[name] = pairs_of
  end
  return body
end
readonly.snapshot = true

-- records {ids, keys}: the records of at most 100 jobs, each with its version (rev), decision and ledger entry, and the
-- stored refusals of at most 100 keys. Read-only. -> {jobs = [{id, job, payload, decision, ledger}], refusals = [{key, decision}]}
function commands.records(q)
  local jobs, refusals = {}, {}
  for _, id in ipairs(q.a.ids or {}) do
    local job = hash_of(J.key(q, id))
    if job.state then
      jobs[#jobs + 1] = { id = id, job = job, payload = text_of(J.key(q, id) .. ':payload') or '',
        decision = hash_of(q.p .. 'idem:' .. job.key), ledger = hash_of(q.p .. 'ledger:' .. job.key) }
    end
  end
  for _, key in ipairs(q.a.keys or {}) do
    refusals[#refusals + 1] = { key = key, decision = hash_of(q.p .. 'idem:' .. key) }
  end
  return { jobs = jobs, refusals = refusals }
end
readonly.records = true

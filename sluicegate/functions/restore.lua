-- Restoring a snapshot: begin closes the gate and marks it, parts put back what is not there, end takes the mark away.
-- As long as the mark is there, nobody opens the gate (order.lua, run.lua). Each call may be repeated.

-- A library has at most 200 local names, so those of this file end with it.
do

-- The first class or cost class of the file that the contract in force does not declare: its jobs would run without a
-- limit, and nobody could tell what a repeat of them does.
local function undeclared(q, classes, costs)
  for _, class in ipairs(classes) do
    if not q.s.classes[class] and (q.s.strict_classes or class ~= 'other') then return class end
  end
  for _, cost in ipairs(costs) do
    if cost ~= '-' and not q.s.cost_classes[cost] then return cost end
  end
  return nil
end

-- How long the record of what ended after this instant was kept, or is.
local function kept_after(q, instant)
  local kept_ms = q.s.timings.final_retention_ms
  local raised = redis.call('HMGET', q.p .. 'queue:settings', 'retention_raised_at', 'retention_was_ms')
  local at, was = whole_number(raised[1]), whole_number(raised[2])
  if at and was and instant < at then return math.min(kept_ms, was) end
  return kept_ms
end

-- Until when this restore can tell a lost job from one that has ended since: as long as records of ends are kept. 0 is for
-- ever: it began where no queue was, and nothing has run since, for the gate stays closed until its end.
local function told_until(q, g)
  local a, marked = q.a, g.restoring and g.restoring_until
  if marked and (marked == 0 or g.restoring == a.restore) then return marked end
  return a.at + kept_after(q, a.at)
end

local function is_over(q, instant)
  return instant and instant > 0 and q.now > instant
end

-- Half of what is unsafe would run again, though all of it was to be looked at, or the other way round.
local function begun_otherwise(q, g)
  local begun = g.restoring == q.a.restore and not q.a.take_over and g.restoring_suspect
  if not begun or (begun == '1') == (q.a.suspect == true) then return nil end
  return begun == '1' and 'with' or 'without'
end

-- Why nothing can be restored here, or nil.
local function restore_refusal(q, g)
  local a = q.a
  if g.restoring and g.restoring ~= a.restore and not a.take_over then
    return { answer = 'other', why = g.restoring }
  end
  local otherwise = begun_otherwise(q, g)
  if otherwise then return { answer = 'other_wish', why = otherwise } end
  if g.stored == 'uninitialised' then
    local found = old_trace(q) or trace(q)
    return found and { answer = 'not_empty', why = found } or nil
  end
  if not G.readable(g) then return { answer = 'unreadable' } end
  if a.prefix and a.prefix ~= q.p and g.restoring ~= a.restore then return { answer = 'other_queue' } end
  if g.run then return { answer = 'run_live', why = g.run.id } end
  local missing = undeclared(q, a.classes, a.costs)
  if missing then return { answer = 'undeclared', why = missing } end
  if is_over(q, told_until(q, g)) then return { answer = 'too_old', why = g.restoring and 'begun' or nil } end
  return nil
end

local function open_for_restore(q, g)
  local p, a = q.p, q.a
  redis.call('HSET', p .. 'queue:settings', 'contract', a.contract, 'digest', a.digest, 'actor', a.actor, 'reason',
    a.reason, 'at', digits(q.now))
  q.s, q.digest = settings_of(p)
  if not q.s then error('the contract of the snapshot is not one') end
  g.epoch, g.window, g.dwell_ms = tonumber(a.epoch) or 0, '0', q.s.timings.reject_dwell_ms
  redis.call('HSET', p .. 'control:duplicates', 'confirmed', digits(a.confirmed), 'acknowledged', digits(a.acknowledged),
    'audited', digits(a.acknowledged))
  if a.kill ~= '' then redis.call('SET', p .. 'kill', a.kill) end
  for name, value in pairs(a.endpoint) do redis.call('HSET', p .. 'control:endpoint', name, value) end
end

-- restore_begin {restore, actor, reason, take_over, suspect, dry, at, epoch, contract, digest, classes, costs, confirmed,
-- acknowledged, kill, endpoint, prefix}: close the gate, pin it `restored` and mark it as restoring. On a server without the
-- queue its contract comes from the snapshot; where the queue lives, its own stays in force, and the snapshot is one of it:
-- prefix is that of the queue it was taken of. dry: only say what would be done.
-- -> {answer = clean | live | resumed | other | other_wish | not_empty | unreadable | other_queue | run_live | undeclared |
-- too_old, why, digest}
function commands.restore_begin(q)
  local g, a = G.read(q), q.a
  local refusal = restore_refusal(q, g)
  if refusal then return refusal end
  local clean = g.stored == 'uninitialised'
  local answer = g.restoring == a.restore and 'resumed' or clean and 'clean' or 'live'
  if a.dry then return { answer = answer, digest = q.digest or '' } end
  local suspect = a.suspect and '1' or '0'
  if answer == 'resumed' then
    redis.call('HSET', q.p .. 'control:gate', 'restoring_suspect', suspect)
    return { answer = answer, digest = q.digest or '' }
  end
  local until_ms = clean and 0 or told_until(q, g)
  if clean then open_for_restore(q, g) else G.adopt(q, g) end
  if clean or g.drain_state ~= 'drain' then g.since = q.now end
  G.close(q, g, 'restored', 'lost', { reason = 'restore_begun', actor = a.actor, note = a.reason })
  redis.call('HSET', q.p .. 'control:gate', 'restoring', a.restore, 'restoring_until', digits(until_ms),
    'restoring_suspect', suspect)
  return { answer = answer, digest = q.digest or '', epoch = digits(g.epoch) }
end

-- Where the parts of a call begin, and the ids of all of them.
local function parts_of(v, first)
  local starts, ids, i = {}, {}, first
  while v[i] do
    starts[#starts + 1], ids[#ids + 1] = i, v[i + 1]
    i = i + 1 + (v[i] == 'job' and P.JOB_WORDS + v[i + 11] or P.REFUSAL_WORDS)
  end
  return starts, ids
end

-- restore id suspect dry contract, then for each of at most 100 jobs and refusals its kind, `job` or `refusal`, and its
-- words (_portable.lua): put back what is not there (≤ 5 ms). dry, 0 or 1: only count; contract is the snapshot's then.
-- suspect, 0 or 1: pending jobs of unsafe classes become unknown.
-- -> ok | not_restoring | too_old, then how many of each kind: state | kept | refusal | lapsed, n
function commands.restore(q)
  local v, dry, suspect = q.v, q.v[5] == '1', q.v[4] == '1'
  if not dry then
    local g = G.glance(q)
    if not q.s or g.restoring ~= v[3] then return { 'not_restoring' } end
    if is_over(q, g.restoring_until) then return { 'too_old' } end
  elseif not q.s then
    -- A server without the queue has nothing to keep, and the snapshot's own contract tells what is unsafe.
    q.s = cjson.decode(v[6])
  end
  local starts, ids = parts_of(v, 7)
  local there, counts, restored, list = P.there(q, ids), {}, 0, { 'ok' }
  P.begin(q)
  if not dry then P.put_payloads_back(q, v, starts, there) end
  for _, i in ipairs(starts) do
    local kind
    if v[i] == 'job' then
      kind = P.put_back(q, v, i + 1, there, suspect, dry)
      if kind ~= 'kept' then restored = restored + 1 end
    else
      kind = P.put_refusal_back(q, v, i + 1, there, dry)
    end
    counts[kind] = (counts[kind] or 0) + 1
  end
  if restored > 0 and not dry then count(q, 'restored', restored) end
  for kind, n in pairs(counts) do
    list[#list + 1] = kind
    list[#list + 1] = n
  end
  return list
end
hot.restore = true

-- restore_end {restore, actor, note}: all is back. The gate stays drain, closed and pinned. -> {answer = moved | unchanged}
function commands.restore_end(q)
  local g = G.read(q)
  if g.restoring ~= q.a.restore then return { answer = 'unchanged' } end
  redis.call('HDEL', q.p .. 'control:gate', 'restoring', 'restoring_until', 'restoring_suspect')
  G.log(q, g, { from = g.drain_state, to = g.drain_state, reason = 'restored', actor = q.a.actor, note = q.a.note })
  return { answer = 'moved', drain_state = G.effective(g), epoch = digits(g.epoch) }
end

end

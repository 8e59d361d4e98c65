-- init {contract, digest, actor, reason}: open a new queue. Named, logged; refused where anything of a queue exists.
-- -> {answer = moved | not_empty | old_layout, found = key}
local TRACES = { 'queue:pending', 'queue:pairs', 'queue:delayed', 'queue:leases', 'queue:unknown',
  'queue:blocked', 'queue:canary', 'queue:settings', 'drain_state', 'admission', 'rollback_reason', 'canary_ok_count',
  'control:gate', 'control:epoch', 'control:log', 'control:duplicates', 'reconcile:log', 'counters', 'runs:live',
  'runs:recent', 'runs:beside', 'lock:run', 'lock:beside', 'queue:refusals' }

-- What only version 1 of the layout had: nothing here reads what such a queue holds.
local OLD_TRACES = { 'queue:enqueued', 'queue:deadlines' }

local function old_trace(q)
  for _, name in ipairs(OLD_TRACES) do
    if redis.call('EXISTS', q.p .. name) == 1 then return q.p .. name end
  end
  return nil
end

-- The first key found of a queue that lives, or lived, under this prefix, or nil.
local function trace(q)
  for _, name in ipairs(TRACES) do
    if redis.call('EXISTS', q.p .. name) == 1 then return q.p .. name end
  end
  return nil
end

function commands.init(q)
  local p, old, found = q.p, old_trace(q), trace(q)
  if old then return { answer = 'old_layout', found = old } end
  if found then return { answer = 'not_empty', found = found } end
  redis.call('HSET', p .. 'queue:settings', 'contract', q.a.contract, 'digest', q.a.digest, 'actor', q.a.actor, 'reason',
    q.a.reason, 'at', digits(q.now))
  q.s, q.digest = settings_of(p)
  local g = G.read(q)
  g.drain_state, g.window, g.dwell_ms = 'admit', '0', q.s.timings.reject_dwell_ms
  G.move(q, g, 'drain', { reason = 'init', actor = q.a.actor, note = q.a.reason })
  redis.call('SET', p .. 'control:seen', digits(q.now))
  return { answer = 'moved', epoch = digits(g.epoch) }
end

-- What has ended goes as the retention of that day said, also once another is in force: a restore has to know it.
local function note_raised_retention(q, before)
  local key, kept_ms = q.p .. 'queue:settings', q.s and q.s.timings.final_retention_ms
  if not before or not kept_ms or kept_ms <= before then return end
  local raised = redis.call('HMGET', key, 'retention_raised_at', 'retention_was_ms')
  local at, was = whole_number(raised[1]), whole_number(raised[2])
  if at and was and q.now - at < before then before = math.min(before, was) end
  redis.call('HSET', key, 'retention_raised_at', digits(q.now), 'retention_was_ms', digits(before))
end

-- apply {contract, digest, actor, reason}: replace the stored contract of a queue that exists. Named, logged. Where the
-- gate's records are gone but jobs are left, it is the first step back: the gate then reads as unreadable, and a named
-- person may open it.
-- -> {answer = moved | unchanged | unreadable | old_layout, was = digest}
function commands.apply_settings(q)
  if old_trace(q) then return { answer = 'old_layout' } end
  local g = G.read(q)
  if g.stored == 'uninitialised' and not trace(q) then return { answer = 'unreadable' } end
  local was, kept, retention = q.digest or '', q.s and J.keeps_list(q), q.s and q.s.timings.final_retention_ms
  if was == q.a.digest then return { answer = 'unchanged', was = was } end
  put('HSET', q.p .. 'queue:settings', 'contract', q.a.contract, 'digest', q.a.digest, 'actor', q.a.actor, 'reason',
    q.a.reason, 'at', digits(q.now))
  q.s, q.digest = settings_of(q.p)
  note_raised_retention(q, retention)
  if q.s and kept ~= J.keeps_list(q) then J.list_anew(q) end
  g = G.read(q) -- where the settings alone were lost, the gate stands as before
  G.log(q, g, { from = g.drain_state, to = g.drain_state, reason = 'settings_applied', actor = q.a.actor,
    note = was .. ' -> ' .. q.a.digest .. ': ' .. q.a.reason })
  return { answer = 'moved', was = was }
end

-- library_replaced {was, now, actor, reason}: write down that a named person put other code in the place of the library.
-- -> {answer = moved | unreadable}
function commands.library_replaced(q)
  local g = G.read(q)
  if g.stored == 'uninitialised' then return { answer = 'unreadable' } end
  G.log(q, g, { from = g.drain_state, to = g.drain_state, reason = 'library_replaced', actor = q.a.actor,
    note = q.a.was .. ' -> ' .. q.a.now .. ': ' .. q.a.reason })
  return { answer = 'moved' }
end

-- settings {}: the stored contract. -> {contract, digest, actor, reason, at}
function commands.settings(q)
  return hash_of(q.p .. 'queue:settings')
end
readonly.settings = true

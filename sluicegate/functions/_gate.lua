-- The gate: how it reads, and the only code that writes it (contract §6). The same rules as sluicegate/transition.py.

local TIGHTNESS = { admit = 0, reject_new = 1, recovering = 2, drain = 3 }

-- control:gate holds every one of these, '' for none: a missing field means that data was lost.
local GATE_FIELDS = {
  'drain_state', 'rollback_reason', 'pin', 'pin_note', 'green', 'ramp', 'since', 'reason', 'actor', 'window',
  'ok_since', 'dwell_ms', 'left_reject_at', 'reopened_at', 'limit_at', 'canary_ok', 'canary_failed', 'green_backlog',
}

-- What may stand in a field; anything else means that the record was damaged.
local ROLLBACK_REASONS = { canary_failed = true, queue_age_not_recovering = true, duplicate_side_effect = true,
  manual_operator_hold = true }
local PINS = { uninitialised = true, control_data_lost = true, operator = true, hand_edit = true, rolled_back = true,
  repeated_drain = true, run_lost = true, run_refused = true, restored = true }
local RUNBOOKS = { ['drain-and-recover'] = true, ['rollback-and-audit'] = true }
local NUMBERS = { 'since', 'window', 'ok_since', 'dwell_ms', 'left_reject_at', 'reopened_at', 'limit_at', 'canary_ok',
  'canary_failed', 'green_backlog' }

function G.live_run(q, id)
  if not id then return nil end
  local run = hash_of(q.p .. 'run:' .. id)
  if not RUNBOOKS[run.runbook or ''] or (run.state ~= 'running' and run.state ~= 'rolling_back') then return nil end
  run.id = id
  return run
end

-- What nobody can have seen is not kept, for it would close the gate for all: an epoch is a µs of the server's time, and this
-- is one of the year 2112. The moves after it still have epochs of their own: a number loses digits above 2^53.
local LATEST_BROUGHT = 2 ^ 52

-- Make sense of the record of the last move; what is not there or makes no sense reads as nothing, and the record as
-- not whole.
local function parse_record(flat)
  local h, g = {}, {}
  for i = 1, #flat, 2 do h[flat[i]] = flat[i + 1] end
  local whole = true
  for _, field in ipairs(GATE_FIELDS) do
    if h[field] == nil then whole = false end
    g[field] = h[field] or ''
  end
  for _, field in ipairs(NUMBERS) do
    local number = whole_number(h[field])
    if not number then whole = false end
    if field ~= 'window' then g[field] = number or 0 end
  end
  local function known(field, values)
    local value = none(g[field])
    if value and not values[value] then whole, value = false, nil end
    g[field] = value
  end
  -- The restore that is not complete, if any, until when it can tell what has ended, and whether it suspects what is unsafe:
  -- restore.lua writes them.
  g.restoring, g.restoring_until = none(h.restoring), whole_number(h.restoring_until)
  g.restoring_suspect = none(h.restoring_suspect)
  -- The highest epoch that a caller brought while the data was older: G.note_behind writes it.
  g.brought = whole_number(h.brought) or 0
  if g.brought > LATEST_BROUGHT then g.brought = 0 end
  known('rollback_reason', ROLLBACK_REASONS)
  known('pin', PINS)
  if g.ramp ~= '' and not whole_number(g.ramp) then whole = false end
  if g.green ~= '0' and g.green ~= '1' then whole = false end
  g.ramp, g.green = whole_number(g.ramp), g.green == '1'
  g.whole = whole and TIGHTNESS[g.drain_state] ~= nil
  return g
end

-- Between two moves the record stays the same: it is read and parsed where its dump is new. A dump costs half of what
-- reading the values does; whoever may not ask for one gets an error, which is never old.
local records_kept = { by = {}, n = 0 }

-- { dump, parsed, shown }: shown lets a table without a field of its own give the record's.
local function record_of(q)
  local key = known_of(q).keys['control:gate']
  local dump, known = redis.pcall('DUMP', key), records_kept.by[key]
  if dump and known and known.dump == dump then return known end
  local flat = redis.pcall('HGETALL', key)
  local parsed = parse_record(flat.err and {} or flat)
  return keep(records_kept, key, { dump = dump, parsed = parsed, shown = { __index = parsed } })
end

-- Duplicates that can't be counted any more are taken for one that nobody has acknowledged.
local function read_duplicates(q, g)
  local counts = redis.pcall('HMGET', q.p .. 'control:duplicates', 'confirmed', 'acknowledged', 'audited')
  if counts.err then
    g.confirmed, g.acknowledged, g.audited = nil, nil, nil
  else
    g.confirmed, g.acknowledged, g.audited = whole_number(counts[1] or '0'), whole_number(counts[2] or '0'),
      whole_number(counts[3] or '0')
  end
  local damaged = not (g.confirmed and g.acknowledged and g.audited)
  if damaged then g.confirmed, g.acknowledged, g.audited = 1, 0, 0 end
  g.duplicates, g.duplicates_damaged = g.confirmed > g.acknowledged, damaged
  return not damaged
end

-- A damaged record already stands for a duplicate that nobody has acknowledged.
function G.count_duplicate(q, key, note)
  if not read_duplicates(q, {}) then return end
  redis.call('HINCRBY', q.p .. 'control:duplicates', 'confirmed', 1)
  redis.call('HSET', q.p .. 'control:duplicates', 'last_key', key, 'last_note', note, 'last_at', digits(q.now))
end

local function read_gate(q)
  local p = q.p
  local texts = redis.call('MGET', p .. 'control:epoch', p .. 'drain_state', p .. 'admission', p .. 'control:seen',
    p .. 'lock:run')
  local epoch, record = whole_number(texts[1]), record_of(q)
  -- With room for what read_duplicates adds: a table that has to grow costs as much as a read.
  local g = { stored = 'ok', raw_state = texts[2] or nil, raw_admission = texts[3] or nil, epoch = epoch or 0,
    seen = whole_number(texts[4]) or 0, run = texts[5] and G.live_run(q, texts[5]) or nil, drain_state = nil,
    behind = false, confirmed = nil, acknowledged = nil, audited = nil, duplicates = nil, duplicates_damaged = nil }
  local whole = read_duplicates(q, g) and record.parsed.whole
  local raw = TIGHTNESS[g.raw_state or ''] and (g.raw_admission == 'open' or g.raw_admission == 'closed')
  if not (whole and raw and epoch and q.s) then
    local none_of_it = redis.call('EXISTS', p .. 'control:gate', p .. 'control:epoch', p .. 'queue:settings') == 0
    g.stored = none_of_it and 'uninitialised' or 'unreadable'
  end
  if g.stored ~= 'ok' then g.drain_state = 'drain' end
  -- What another caller has seen counts for each: it may be gone, and all who come new have seen nothing.
  q.seen = math.max(q.seen, record.parsed.brought)
  g.behind = g.stored == 'ok' and q.seen > g.epoch
  return g, record
end

-- Keep that a caller has seen a later epoch than there is, for a controller that starts now. It is no move, and stands
-- until a move is later.
function G.note_behind(q, g)
  if g.behind and q.seen > g.brought and q.seen <= LATEST_BROUGHT then
    redis.call('HSET', q.p .. 'control:gate', 'brought', digits(q.seen))
  end
end

-- Read the whole gate. stored: ok, uninitialised (no move was ever made here) or unreadable (a part is missing or
-- garbage). A raw key alone opens nothing: it may have been set before the queue was.
function G.read(q)
  local g, record = read_gate(q)
  for field, value in pairs(record.parsed) do
    if g[field] == nil then g[field] = value end
  end
  return g
end

-- The same for commands that decide by the gate and never write it: the record is not copied. Gives the record as well.
function G.glance(q)
  local g, record = read_gate(q)
  return setmetatable(g, record.shown), record
end

-- Make damaged records whole again; the values are what could still be read. Only a named person asks for it.
function G.repair(q, g)
  if g.duplicates_damaged then
    redis.call('DEL', q.p .. 'control:duplicates')
    redis.call('HSET', q.p .. 'control:duplicates', 'confirmed', '1', 'acknowledged', '0', 'audited', '0')
  end
  if not whole_number(g.window) then g.window = '0' end
end

function G.is_rollback_reason(reason)
  return ROLLBACK_REASONS[reason or ''] ~= nil
end

function G.readable(g)
  return g.stored == 'ok' and not g.behind
end

-- What the two raw keys read as together; `admission closed` in admit reads as reject_new.
local function raw_reading(state, admission)
  if state == 'admit' and admission == 'closed' then return 'reject_new' end
  return state
end

function G.effective(g)
  if not G.readable(g) then return 'drain' end
  local reading = raw_reading(g.raw_state, g.raw_admission)
  if TIGHTNESS[reading] > TIGHTNESS[g.drain_state] then return reading end
  return g.drain_state
end

function G.effective_pin(g)
  if g.stored == 'uninitialised' then return 'uninitialised' end
  if not G.readable(g) then return 'control_data_lost' end
  return g.pin
end

function G.recovery_live(g)
  return g.run ~= nil and g.run.runbook == 'drain-and-recover' and g.run.state == 'running'
end

function G.silent(q, g)
  -- One that looked in the future has not looked: the key is damaged.
  return math.abs(q.now - g.seen) > q.s.timings.controller_silent_ms
end

-- An opening that did not hold this long is not followed by another one without a person.
function G.reopened_lately(q, g)
  return g.reopened_at > 0 and q.now - g.reopened_at < q.s.timings.second_drain_ms
end

-- The share of ordinary jobs admitted now, in percent: ramp, silence and closing included.
function G.admitted_percent(q, g)
  if not G.readable(g) or G.effective(g) ~= 'admit' or G.silent(q, g) then return 0 end
  return g.ramp or 100
end

-- What the gate was judged to say, with the words it was judged by; of one that can't be read nothing is kept.
local function judge(q, known)
  local g, record = G.glance(q)
  G.note_behind(q, g)
  known.judged = nil
  local judged = { record = record, epoch = g.epoch, epoch_text = digits(g.epoch), state = g.raw_state,
    admission = g.raw_admission, seen = g.seen, seen_text = nil, closed = G.effective(g) ~= 'admit', ramp = g.ramp }
  if G.readable(g) then known.judged = judged end
  return judged
end

-- Why the gate lets nobody in, or nil; the share that a ramp lets in, in percent, or nil; and the epoch as text. As G.glance
-- reads it: what was judged by the same words is not judged again.
function G.admission(q)
  local known = known_of(q)
  local keys, judged = known.keys, known.judged
  local texts = redis.call('MGET', keys['control:epoch'], keys['drain_state'], keys['admission'], keys['control:seen'])
  if not judged or texts[1] ~= judged.epoch_text or texts[2] ~= judged.state or texts[3] ~= judged.admission
    or q.seen > judged.epoch or record_of(q) ~= judged.record
    or (redis.call('EXISTS', keys['control:duplicates']) ~= 0 and not read_duplicates(q, {})) then
    judged = judge(q, known)
  elseif texts[4] ~= judged.seen_text then
    judged.seen_text, judged.seen = texts[4], whole_number(texts[4]) or 0
  end
  if judged.closed then return 'admission_closed', nil, judged.epoch_text end
  if G.silent(q, judged) then return 'controller_silent', nil, judged.epoch_text end
  return nil, judged.ramp, judged.epoch_text
end

function G.save(q, g)
  local flat = {}
  for _, field in ipairs(GATE_FIELDS) do
    local value = g[field]
    if value == nil then value = '' end
    if value == true then value = '1' elseif value == false then value = '0' end
    if type(value) == 'number' then value = digits(value) end
    flat[#flat + 1] = field
    flat[#flat + 1] = value
  end
  put('HSET', q.p .. 'control:gate', unpack(flat))
end

function G.mirror(q, g)
  local p = q.p
  redis.call('SET', p .. 'drain_state', g.drain_state)
  redis.call('SET', p .. 'admission', g.drain_state == 'admit' and 'open' or 'closed')
  redis.call('SET', p .. 'canary_ok_count', digits(g.canary_ok))
  if g.rollback_reason then
    redis.call('SET', p .. 'rollback_reason', g.rollback_reason)
  else
    redis.call('DEL', p .. 'rollback_reason')
  end
  g.raw_state, g.raw_admission = g.drain_state, g.drain_state == 'admit' and 'open' or 'closed'
end

function G.log(q, g, entry)
  put('XADD', q.p .. 'control:log', 'MAXLEN', '~', '10000', '*', 'at', digits(q.now), 'from', entry.from, 'to',
    entry.to, 'reason', entry.reason, 'actor', entry.actor, 'epoch', digits(g.epoch), 'pin', g.pin or '', 'run',
    entry.run or (g.run and g.run.id) or '', 'note', entry.note or '', 'figures', entry.figures or '{}')
  A.write(q, 'gate', 'from', entry.from, 'to', entry.to, 'reason', entry.reason, 'actor', entry.actor, 'epoch',
    digits(g.epoch), 'pin', g.pin or '', 'run', entry.run or (g.run and g.run.id) or '', 'note', entry.note or '',
    'figures', entry.figures or '{}')
end

-- Write a move: why = {reason, actor, note, figures, run, window}. Raises the epoch, stores, mirrors and logs in one go.
-- A window of the provider's calls begins with each move into recovering, and where why.window asks for it.
function G.move(q, g, from, why)
  -- After a failover to a clock that is behind, the server's time alone would leave the gate behind what was seen.
  local old = g.behind and math.max(g.epoch, q.seen) or g.epoch
  g.epoch = math.max(old + 1, q.us)
  g.stored, g.behind = 'ok', false
  if g.drain_state ~= from then g.since = q.now end
  g.reason, g.actor = why.reason, why.actor
  if g.drain_state ~= 'recovering' then g.green = false end
  if g.drain_state ~= 'admit' then g.ramp = nil end
  if g.drain_state ~= 'recovering' and not g.ramp then g.limit_at = 0 end
  if g.drain_state ~= 'reject_new' then g.ok_since = 0 end
  if g.drain_state == 'recovering' and (from ~= 'recovering' or why.window) then g.window = digits(g.epoch) end
  if g.pin == nil then g.pin_note = '' end
  local pinned = record_of(q).parsed.pin
  redis.call('SET', q.p .. 'control:epoch', digits(g.epoch))
  G.save(q, g)
  G.mirror(q, g)
  G.log(q, g, { from = from, to = g.drain_state, reason = why.reason, actor = why.actor, note = why.note,
    figures = why.figures, run = why.run })
  R.tell_pin(q, g, pinned, why)
  put('LPUSH', q.p .. 'queue:wake', '1')
  put('LTRIM', q.p .. 'queue:wake', 0, 15)
end

function G.pin(g, reason, note)
  g.pin, g.pin_note = reason, note or ''
end

-- The run's rollback move: drain/closed, pinned, ramp ended, the run's fence revoked; its hooks are finished later.
function G.roll_back_run(q, g, rollback_reason, why)
  local from = g.drain_state
  g.drain_state, g.rollback_reason, g.ramp = 'drain', rollback_reason, nil
  G.pin(g, 'rolled_back', why.note or why.reason)
  R.revoke(q, g.run, 'rolling_back', rollback_reason, why)
  G.cancel_canaries(q)
  G.move(q, g, from, why)
end

-- Adopt a tightening hand edit as actor `hand`, pinned; write back any other. Returns whether the gate moved; what is in
-- hand is then the gate as it was stored.
function G.adopt(q, g)
  if not G.readable(g) then return false end
  local expected = g.drain_state == 'admit' and 'open' or 'closed'
  if g.raw_state == g.drain_state and g.raw_admission == expected then return false end
  -- Nobody can put a gate into recovering by hand; what was written beside it still counts.
  local raw_state = g.raw_state == 'recovering' and g.drain_state or g.raw_state
  local reading = raw_reading(raw_state, g.raw_admission)
  if TIGHTNESS[reading] <= TIGHTNESS[g.drain_state] then
    local wrote = g.raw_state ~= g.drain_state and 'drain_state ' .. g.raw_state or 'admission ' .. g.raw_admission
    G.move(q, g, g.drain_state, { reason = 'hand_edit_written_back', actor = 'hand', note = 'SET ' .. wrote
      .. ' was written back: a raw edit can only tighten; use `sluicegate gate open --as NAME --reason WHY`' })
    return true
  end
  local why = { reason = 'hand_edit', actor = 'hand', note = 'a raw key was set by hand' }
  if G.recovery_live(g) then
    G.roll_back_run(q, g, 'manual_operator_hold', why)
    return true
  end
  local from = g.drain_state
  g.drain_state, g.ok_since, g.dwell_ms = reading, 0, q.s.timings.reject_dwell_ms
  G.pin(g, 'hand_edit', why.note)
  G.move(q, g, from, why)
  return true
end

-- Close to drain with no run and no recovery left over; run_state names how a live run ended.
function G.close(q, g, pin, run_state, why)
  local from = g.drain_state
  if g.run then
    R.finish(q, g.run, run_state, why)
    g.run = nil
  end
  g.drain_state, g.ramp, g.green = 'drain', nil, false
  g.pin, g.pin_note = pin, pin and (why.note or why.reason) or ''
  G.cancel_canaries(q)
  G.move(q, g, from, why)
end

-- Close, pin and put rollback-and-audit in the live run's place; nothing twice for the same duplicates.
function G.roll_back_duplicates(q, g, why)
  local from = g.drain_state
  local auditing = g.run and g.run.runbook == 'rollback-and-audit'
  local stands = from == 'drain' and g.rollback_reason == 'duplicate_side_effect' and g.pin == 'rolled_back'
    and (auditing or not g.run) and g.audited >= g.confirmed
  if stands then return false end
  local supersedes = g.run and not auditing
  if supersedes then
    R.finish(q, g.run, 'superseded', why)
    g.run = nil
  end
  if not g.run and (supersedes or g.audited < g.confirmed) then
    g.run = R.create(q, { runbook = 'rollback-and-audit', trigger = 'controller', actor = why.actor,
      reason = 'duplicate_side_effect', id = q.a.audit_run_id })
  end
  redis.call('HSET', q.p .. 'control:duplicates', 'audited', g.confirmed)
  g.drain_state, g.rollback_reason, g.ramp = 'drain', 'duplicate_side_effect', nil
  G.pin(g, 'rolled_back', 'duplicate_side_effect')
  G.cancel_canaries(q)
  G.move(q, g, from, why)
  return true
end

-- Canaries that wait are cancelled; one that runs is settled by its worker and counts for nothing.
function G.cancel_canaries(q)
  local ids = put('ZRANGE', q.p .. 'queue:canary', 0, 99)
  for _, id in ipairs(ids) do
    redis.call('ZREM', q.p .. 'queue:canary', id)
    J.finish_record(q, id, 'failed', 'cancelled')
  end
end

function G.write_decision(q, action, reason, figures)
  put('HSET', q.p .. 'control:decision', 'action', action, 'reason', reason, 'at', digits(q.now), 'figures',
    figures or '{}')
end

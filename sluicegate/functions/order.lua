-- order {order, actor, reason, pin, run, seen}: carry out what a named person asks of the gate (contract §6, "Named
-- persons").
-- order: open | open_end_run | drain | reject | hold | release | abort | acknowledge. `run` names the run that an abort is
-- meant for, '' for whichever is live: one that has taken its place meanwhile is not ended with it. `seen` is the gate that
-- a release or an acknowledgement is meant for, `epoch/unacknowledged duplicates`, '' for any.
-- -> {answer = moved | unchanged | stale | gone | run_live | duplicates | unreadable | restoring, drain_state, pin, epoch,
--     acknowledged, run}

-- What may be asked of a gate that can't be read: it is whole again afterwards.
local REPAIRS = { open = true, open_end_run = true, drain = true, reject = true, hold = true }

local function by_name(q)
  return { reason = 'operator_' .. q.a.order, actor = q.a.actor, note = q.a.reason }
end

-- Take note of the duplicates known by now, in a named person's name. -> how many
local function acknowledge(q, g)
  local known = g.confirmed - g.acknowledged
  redis.call('HSET', q.p .. 'control:duplicates', 'acknowledged', digits(g.confirmed), 'audited', digits(g.confirmed),
    'by', q.a.actor)
  g.acknowledged, g.duplicates = g.confirmed, false
  return known
end

-- The same as an act of its own, which moves no gate but has its entry in the log.
function G.acknowledge(q, g)
  if not g.duplicates then return 0 end
  local known = acknowledge(q, g)
  G.log(q, g, { from = g.drain_state, to = g.drain_state, reason = 'operator_acknowledge', actor = q.a.actor,
    note = q.a.reason .. ' (acknowledges ' .. known .. ' confirmed duplicates)' })
  return known
end

local function open(q, g)
  local from, known = g.drain_state, acknowledge(q, g)
  if g.run then
    R.finish(q, g.run, 'aborted', by_name(q))
    g.run = nil
  end
  g.drain_state, g.pin, g.rollback_reason, g.ramp, g.green = 'admit', nil, nil, nil, false
  g.reopened_at, g.left_reject_at, g.dwell_ms = q.now, 0, q.s.timings.reject_dwell_ms
  G.cancel_canaries(q)
  local why = by_name(q)
  why.note = why.note .. ' (acknowledges ' .. known .. ' confirmed duplicates)'
  G.move(q, g, from, why)
  return 'moved', known
end

local function close(q, g)
  local why = by_name(q)
  if not G.readable(g) then
    G.close(q, g, 'operator', 'lost', why)
    return 'moved'
  end
  if G.recovery_live(g) then
    G.roll_back_run(q, g, 'manual_operator_hold', why)
    return 'moved'
  end
  if g.run then return q.a.order == 'reject' and 'run_live' or 'unchanged' end
  if g.duplicates and q.a.order == 'reject' and g.drain_state == 'drain' then return 'duplicates' end
  local pin = (q.a.pin ~= false or q.a.order == 'hold' or g.duplicates) and 'operator' or nil
  if q.a.order == 'drain' or (q.a.order == 'hold' and g.drain_state == 'recovering') then
    G.close(q, g, pin, 'lost', why)
    return 'moved'
  end
  local from = g.drain_state
  g.pin, g.pin_note = pin, pin and why.note or ''
  if q.a.order == 'reject' then
    g.drain_state, g.rollback_reason, g.ramp, g.ok_since = 'reject_new', nil, nil, 0
    g.dwell_ms = q.s.timings.reject_dwell_ms
  end
  G.move(q, g, from, why)
  return 'moved'
end

local function abort(q, g)
  if none(q.a.run) and not (g.run and g.run.id == q.a.run) then return 'gone' end
  if G.recovery_live(g) then
    G.roll_back_run(q, g, 'manual_operator_hold', by_name(q))
    return 'moved'
  end
  if g.run and g.run.runbook == 'rollback-and-audit' then
    R.finish(q, g.run, 'aborted', by_name(q))
    g.run = nil
    return 'moved'
  end
  return 'unchanged'
end

local function release(q, g)
  if g.run then return 'run_live' end
  if g.duplicates then return 'duplicates' end
  if not g.pin then return 'unchanged' end
  g.pin = nil
  if g.drain_state ~= 'drain' then g.rollback_reason = nil end
  -- The controller waits for a webhook from now on, not from the drain of long ago.
  g.since = q.now
  G.move(q, g, g.drain_state, by_name(q))
  return 'moved'
end

-- Nothing but its end takes the mark of a restore away: half a queue must not open.
local LOOSENS = { open = true, open_end_run = true, reject = true, release = true }

local function carry_out(q, g)
  local order = q.a.order
  if g.restoring and LOOSENS[order] then return 'restoring' end
  if order == 'open' and g.run then return 'run_live' end
  if order == 'open' or order == 'open_end_run' then return open(q, g) end
  if order == 'drain' or order == 'reject' or order == 'hold' then return close(q, g) end
  if not G.readable(g) then return 'unreadable' end
  local seen = none(q.a.seen)
  if seen and seen ~= digits(g.epoch) .. '/' .. digits(g.confirmed - g.acknowledged) then return 'stale' end
  if order == 'acknowledge' then
    local known = G.acknowledge(q, g)
    return known > 0 and 'moved' or 'unchanged', known
  end
  if order == 'abort' then return abort(q, g) end
  if order == 'release' then return release(q, g) end
  error('unknown order ' .. tostring(order))
end

function commands.order(q)
  local g = G.read(q)
  if g.stored == 'uninitialised' or not q.s then return { answer = 'unreadable', drain_state = 'drain', epoch = '0' } end
  G.adopt(q, g)
  if g.stored == 'unreadable' and REPAIRS[q.a.order] then G.repair(q, g) end
  local run = g.run and g.run.id or ''
  local answer, known = carry_out(q, g)
  return { answer = answer, drain_state = g.drain_state, pin = g.pin, epoch = digits(g.epoch), acknowledged = known or 0,
    run = run }
end

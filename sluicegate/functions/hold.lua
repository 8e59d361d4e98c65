-- A named person holds a live recovery where it is, and lets it go on. While it is held no step begins or ends and no
-- share grows; the gates go on being measured, and a breach rolls back. The time of a hold counts for no limit. One that
-- lasts too long is the run's rollback (contract §7).

-- A library has at most 200 local names, so those of this file end with it.
do

-- Until when a run is held, or nil.
function R.held_until(run)
  local until_ms = whole_number(run.held_until)
  return until_ms and until_ms > 0 and until_ms or nil
end

-- What a held run may do: fail, go on proving itself, and say what became of what was under way.
function R.may_while_held(args)
  if args.effect == 'rollback' or args.effect == 'canary' then return true end
  return args.effect == 'journal' and args.phase ~= 'started' and args.phase ~= 'done' and args.phase ~= 'intent'
end

-- Roll a held run back whose hold has ended by itself; nothing before that. -> whether it did
function R.end_overdue_hold(q, g, actor)
  local until_ms = R.held_until(g.run)
  if not until_ms or q.now < until_ms then return false end
  G.roll_back_run(q, g, 'manual_operator_hold', { actor = actor, reason = 'hold_expired',
    note = 'the hold has expired: ' .. (g.run.held_by or '') })
  return true
end

local function recovery_of(q)
  local g = G.read(q)
  if not G.readable(g) then return g, 'unreadable' end
  G.adopt(q, g)
  if not G.recovery_live(g) or g.run.id ~= q.a.run then return g, 'gone' end
  return g, nil
end

local function say(q, g, phase)
  R.journal(q, g.run.id, { seq = g.run.step, verb = g.run.verb, phase = phase, actor = q.a.actor, text = q.a.reason })
  G.log(q, g, { from = g.drain_state, to = g.drain_state, reason = 'run_' .. phase, actor = q.a.actor, note = q.a.reason })
end

-- hold {run, actor, reason, ms}: hold a live recovery for so long, 0 for as long as the contract allows; again with
-- another time. -> {answer = moved | gone | unreadable, until}
function commands.hold(q)
  local g, refusal = recovery_of(q)
  if refusal then return { answer = refusal } end
  -- A contract that was applied before this was a setting does not say.
  local most = q.s.timings.hold_max_ms or 1800000
  local ends = q.now + (q.a.ms > 0 and math.min(q.a.ms, most) or most)
  local since = R.held_until(g.run) and g.run.held_since or digits(q.now)
  redis.call('HSET', q.p .. 'run:' .. g.run.id, 'held_since', since, 'held_until', digits(ends), 'held_by', q.a.actor
    .. ': ' .. q.a.reason)
  say(q, g, 'held')
  return { answer = 'moved', ['until'] = digits(ends) }
end

-- resume {run, actor, reason}: let a held run go on. -> {answer = moved | unchanged | expired | gone | unreadable}
function commands.resume(q)
  local g, refusal = recovery_of(q)
  if refusal then return { answer = refusal } end
  if not R.held_until(g.run) then return { answer = 'unchanged' } end
  if R.end_overdue_hold(q, g, 'controller') then return { answer = 'expired' } end
  local key, held_ms = q.p .. 'run:' .. g.run.id, math.max(0, q.now - (whole_number(g.run.held_since) or q.now))
  redis.call('HSET', key, 'step_held_ms', digits((whole_number(g.run.step_held_ms) or 0) + held_ms))
  redis.call('HDEL', key, 'held_since', 'held_until', 'held_by')
  if g.limit_at > 0 then
    g.limit_at = g.limit_at + held_ms
    G.save(q, g)
  end
  say(q, g, 'resumed')
  return { answer = 'moved' }
end

end

-- lead {controller}: take or renew the controller's lease. One controller acts at a time.
-- -> {leading, fence}
function commands.lead(q)
  if not q.s then return { leading = true, fence = '0' } end
  local key = q.p .. 'lock:controller'
  local lock = hash_of(key)
  if lock.owner and lock.owner ~= q.a.controller and R.leased(q, lock.lease_end, q.s.timings.controller_lease_ms) then
    return { leading = false, fence = '' }
  end
  local fence = lock.owner == q.a.controller and none(lock.fence) or digits(math.max((tonumber(lock.fence) or 0) + 1, q.us))
  put('HSET', key, 'owner', q.a.controller, 'fence', fence, 'lease_end',
    digits(q.now + q.s.timings.controller_lease_ms))
  return { leading = true, fence = fence }
end

-- A lease that has ended leads no more: a controller that was stopped between its look and its move has old figures.
local function led(q, fence)
  local lock = hash_of(q.p .. 'lock:controller')
  if lock.fence == nil then return fence == '0' end
  return lock.fence == fence and (tonumber(lock.lease_end) or 0) > q.now
end

-- A run's limit passed by more than its grace is a breach: a dead executor can't leave the gate open.
local function overdue(q, g)
  if not G.recovery_live(g) then return end
  if R.held_until(g.run) then
    R.end_overdue_hold(q, g, 'controller')
    return
  end
  if g.limit_at == 0 or q.now <= g.limit_at + q.s.timings.limit_grace_ms then return end
  local why = { actor = 'controller', reason = 'limit_overdue' }
  if g.drain_state == 'recovering' and not g.green then
    G.roll_back_run(q, g, 'canary_failed', why)
  elseif g.drain_state == 'recovering' or g.ramp then
    G.roll_back_run(q, g, 'queue_age_not_recovering', why)
  end
end

-- tick fence: adopt hand edits, find overdue limits, answer the figures of this instant.
-- -> as observe
function commands.tick(q)
  local fence = q.v[3]
  local g = G.read(q)
  if G.readable(g) and led(q, fence) then
    G.adopt(q, g)
    overdue(q, g)
    g = G.read(q)
  end
  return F.observe(q, g)
end
hot.tick = true

-- observe: the figures of this instant. Read-only. -> F.observe's list
function commands.observe(q)
  return F.observe(q, G.glance(q))
end
readonly.observe = true
hot.observe = true

local function drained(q, g, why)
  if g.drain_state == 'drain' then return end
  if G.recovery_live(g) then
    -- Before green the canaries alone decide: the incident's errors must not end the recovery.
    if g.drain_state == 'recovering' and not g.green then return end
    G.roll_back_run(q, g, 'queue_age_not_recovering', why)
    return
  end
  local from = g.drain_state
  g.drain_state = 'drain'
  if not g.pin and G.reopened_lately(q, g) then
    G.pin(g, 'repeated_drain', 'drained again ' .. digits((q.now - g.reopened_at) / 1000) .. ' s after a reopening')
  end
  G.move(q, g, from, why)
end

-- Each return to reject_new soon after leaving it doubles the dwell.
function G.enter_reject(q, g, why)
  local timings = q.s.timings
  if g.left_reject_at > 0 and q.now - g.left_reject_at <= timings.reject_return_ms then
    g.dwell_ms = math.min(2 * g.dwell_ms, timings.reject_dwell_max_ms)
    count(q, 'reject_returns')
  else
    g.dwell_ms = timings.reject_dwell_ms
  end
  g.drain_state, g.ok_since = 'reject_new', 0
  G.move(q, g, 'admit', why)
end

local function leave_reject(q, g, stale, why)
  local held = g.ok_since > 0 and q.now - g.ok_since >= g.dwell_ms
  if stale or not held or g.drain_state ~= 'reject_new' then return end
  -- Duplicates confirmed after the figures were read leave the epoch as it was.
  if g.run or g.pin or g.rollback_reason or g.duplicates then return end
  g.drain_state, g.left_reject_at = 'admit', q.now
  G.move(q, g, 'reject_new', why)
end

-- Since when the exit condition holds; a stale reading says nothing, and neither does a time in which nobody looked.
local function track_exit(q, g, stale)
  local since = g.ok_since
  if g.drain_state ~= 'reject_new' or not q.a.exit_ok then
    since = 0
  elseif G.silent(q, g) then
    since = stale and 0 or q.now
  elseif not stale and since == 0 then
    since = q.now
  end
  if since ~= g.ok_since then
    g.ok_since = since
    redis.call('HSET', q.p .. 'control:gate', 'ok_since', digits(since))
  end
end

local function apply_action(q, g, stale, why)
  local action = q.a.action
  if action == 'roll_back' then
    if g.duplicates then G.roll_back_duplicates(q, g, why) end
    return
  end
  if not G.recovery_live(g) and (g.drain_state == 'recovering' or g.ramp) then
    G.close(q, g, 'run_lost', 'lost', { reason = 'run_lost', actor = 'controller' })
    return
  end
  track_exit(q, g, stale)
  if action == 'drain' then
    drained(q, g, why)
  elseif action == 'reject_new' and g.drain_state == 'admit' then
    if g.ramp then
      G.roll_back_run(q, g, 'queue_age_not_recovering', why)
    else
      G.enter_reject(q, g, why)
    end
  elseif action == 'admit' then
    leave_reject(q, g, stale, why)
  end
end

local function end_run_unread(q, g, why)
  if g.run and q.s then R.finish(q, g.run, 'lost', why) end
end

-- move_gate {action, reason, exit_ok, epoch, fence, figures}: apply the controller's decision, then say that it looked.
-- Loosening needs the epoch the figures were read at; tightening never fails on it. Adoption alone answers unchanged.
-- -> {answer = moved | unchanged | stale | unreadable, drain_state, epoch}
function commands.move_gate(q)
  if not led(q, q.a.fence) then return { answer = 'stale', drain_state = 'drain', epoch = '0' } end
  local g = G.read(q)
  local before = g.epoch
  local why = { reason = q.a.reason, actor = 'controller', figures = q.a.figures }
  if not G.readable(g) then R.end_besides(q, 'lost', { reason = 'control_data_lost', actor = 'controller' }) end
  if g.behind then
    G.close(q, g, 'control_data_lost', 'lost', { reason = 'control_data_lost', actor = 'controller',
      note = 'epoch ' .. digits(g.epoch) .. ' is older than ' .. digits(q.seen) .. ', which was seen before' })
  elseif g.stored ~= 'ok' then
    end_run_unread(q, g, { reason = 'control_data_lost', actor = 'controller' })
    return { answer = 'unreadable', drain_state = 'drain', epoch = digits(g.epoch) }
  else
    local adopted = G.adopt(q, g)
    before = g.epoch
    G.write_decision(q, q.a.action, q.a.reason, q.a.figures)
    apply_action(q, g, adopted or q.a.epoch ~= digits(g.epoch), why)
  end
  redis.call('SET', q.p .. 'control:seen', digits(q.now))
  return { answer = g.epoch > before and 'moved' or 'unchanged', drain_state = g.drain_state, epoch = digits(g.epoch) }
end

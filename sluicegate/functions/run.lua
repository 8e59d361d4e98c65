-- open_run {runbook, trigger = webhook | timer | person, run, actor, reason, confirmed, digest, episode, permit}: ask for
-- a run. Opening drain-and-recover is its freeze, in this one function (contract §7); one that holds no lock is opened by
-- beside.lua. What holds over all queues lies elsewhere: with permit = ask nothing but that is left to be asked where the
-- answer is `permit`; the next call brings what it came to, `granted` or what forbids the run.
-- -> {answer = moved | attached | suppressed | waiting | refused | run_live | duplicates | unreadable | permit, run, why,
--     epoch, limits = {limit, storm_queues, storm_ms} with permit}

-- A library has at most 200 local names, so those of this file end with it.
do

local function answer_run(g, answer, why)
  return { answer = answer, run = g.run and g.run.id or '', why = why or '', epoch = digits(g.epoch),
    drain_state = g.drain_state, pin = G.effective_pin(g) }
end

local function freeze(q, g)
  local from = g.drain_state
  g.drain_state, g.pin, g.ramp, g.green = 'drain', nil, nil, false
  g.run = R.create(q, { id = q.a.run, runbook = 'drain-and-recover', trigger = q.a.trigger, actor = q.a.actor,
    reason = q.a.reason, note = q.a.note, digest = q.a.digest, episode = q.a.episode })
  G.cancel_canaries(q)
  G.move(q, g, from, { reason = 'run_opened', actor = q.a.actor, note = q.a.trigger .. ': ' .. q.a.reason })
  return answer_run(g, 'moved')
end

local function open_for_machine(q, g)
  if g.pin then return answer_run(g, 'suppressed', 'the gate is pinned: ' .. g.pin) end
  if g.run then return answer_run(g, 'attached') end
  local drained = g.drain_state == 'drain'
  if not drained and G.reopened_lately(q, g) then
    -- The last reopening did not hold: the controller drains and pins, and no machine runs into that again.
    return answer_run(g, 'suppressed', 'the gate was reopened lately: the controller drains and pins')
  end
  if not (q.a.confirmed or drained) then return answer_run(g, 'waiting', 'the figures do not confirm it') end
  if g.duplicates then return answer_run(g, 'duplicates', 'confirmed duplicates are not acknowledged') end
  local forbidden = R.forbidden(q, q.a.runbook)
  if not forbidden and q.a.permit == 'ask' then
    local answer = answer_run(g, 'permit')
    answer.limits = R.limits(q)
    return answer
  end
  if not forbidden then return freeze(q, g) end
  count(q, 'runs_refused:' .. forbidden)
  if drained then
    G.pin(g, 'run_refused', forbidden)
    G.move(q, g, 'drain', { reason = 'run_refused', actor = q.a.actor, note = forbidden })
  end
  return answer_run(g, 'refused', forbidden)
end

local function open_audit(q, g)
  if not g.duplicates then return answer_run(g, 'refused', 'there are no unacknowledged duplicates to audit') end
  q.a.audit_run_id = q.a.run
  local why = { reason = 'duplicate_side_effect', actor = q.a.actor, note = q.a.reason }
  if G.roll_back_duplicates(q, g, why) then return answer_run(g, 'moved') end
  -- Once audited, the same duplicates open no second run: there may be none to attach to.
  return answer_run(g, g.run and 'attached' or 'unchanged')
end

function commands.open_run(q)
  local g = G.read(q)
  if not G.readable(g) then return answer_run(g, 'unreadable', 'the gate is ' .. (g.behind and 'behind' or g.stored)) end
  G.adopt(q, g)
  if g.run and g.run.id == q.a.run then return answer_run(g, 'moved') end -- the same request again
  if g.restoring then return answer_run(g, 'refused', 'a restore is not complete') end
  if not RUNBOOKS[q.a.runbook] then return R.open_beside(q, g) end
  if q.a.runbook == 'rollback-and-audit' then return open_audit(q, g) end
  if q.a.trigger ~= 'person' then return open_for_machine(q, g) end
  if g.run then return answer_run(g, 'run_live', 'run ' .. g.run.id .. ' is live') end
  if g.duplicates then return answer_run(g, 'duplicates', 'confirmed duplicates are not acknowledged') end
  return freeze(q, g)
end

-- claim_run {executor, run, fence, beside}: own the live run that holds the lock, or the one of the runbook `beside`, or
-- renew the ownership. Another executor's run is taken over only when its lease has ended. `besides` names the runbooks of
-- all live runs that hold no lock. -> {found, owned, run = {…}, fence, epoch, besides = [name]}
function commands.claim_run(q)
  local g, names = G.read(q), {}
  for _, one in ipairs(R.besides(q)) do names[#names + 1] = one.runbook end
  local run = g.run
  if none(q.a.beside) then run = R.beside(q, q.a.beside) end
  if not run or not q.s then return { found = false, owned = false, besides = names } end
  local mine = run.owner == q.a.executor and run.fence == q.a.fence and run.id == q.a.run
  if not mine and R.leased(q, run.lease_end, q.s.timings.run_lease_ms) then
    return { found = true, owned = false, run = R.shown(run, run.id), besides = names }
  end
  if not mine then run.fence = R.next_fence(q, run) end
  run.owner, run.lease_end = q.a.executor, digits(q.now + q.s.timings.run_lease_ms)
  redis.call('HSET', q.p .. 'run:' .. run.id, 'owner', run.owner, 'fence', run.fence, 'lease_end', run.lease_end)
  if not mine then R.journal(q, run.id, { seq = run.step, verb = run.verb, phase = 'claimed', actor = q.a.executor }) end
  return { found = true, owned = true, run = R.shown(run, run.id), fence = run.fence, epoch = digits(g.epoch),
    besides = names }
end

local effects = {}

local function proven_by_canaries(q)
  for _, class in pairs(q.s.classes) do
    if class.canary ~= '' then return true end
  end
  return false
end

-- How long the proof may take; without a class that declares a canary it is a person's word, and people take longer.
local function proof_ms(q)
  return proven_by_canaries(q) and q.s.timings.canary_timeout_ms or q.s.timings.fix_timeout_ms
end

function effects.recover(q, g)
  if g.drain_state ~= 'drain' then return 'refused' end
  g.drain_state, g.green, g.canary_ok, g.canary_failed = 'recovering', false, 0, 0
  g.limit_at = q.now + proof_ms(q)
  G.move(q, g, 'drain', { reason = 'run_recover', actor = q.a.executor })
  return 'moved'
end

-- A step that a person lets pass where no class declares a canary.
function effects.green(q, g)
  if g.drain_state ~= 'recovering' or g.green then return 'refused' end
  if g.canary_ok < q.s.canaries_required and not q.a.approved_by then return 'refused' end
  G.turn_green(q, g)
  return 'moved'
end

function effects.reopen(q, g)
  if g.drain_state ~= 'recovering' or not g.green or g.duplicates then return 'refused' end
  if not F.reopening_passes(q, g) then return 'refused' end
  g.drain_state, g.ramp, g.reopened_at = 'admit', q.s.ramp_percents[1], q.now
  g.limit_at = q.now + q.s.timings.ramp_step_ms
  G.move(q, g, 'recovering', { reason = 'run_reopen', actor = q.a.executor, note = 'ramp ' .. g.ramp .. ' %' })
  return 'moved'
end

local function step_passed(q, g)
  return g.ramp and not g.duplicates and q.now >= g.limit_at and F.ramp_passes(q, g)
end

function effects.ramp(q, g)
  if not step_passed(q, g) then return 'refused' end
  for _, percent in ipairs(q.s.ramp_percents) do
    if percent > g.ramp then
      g.ramp, g.limit_at = percent, q.now + q.s.timings.ramp_step_ms
      G.move(q, g, 'admit', { reason = 'run_ramp', actor = q.a.executor, note = 'ramp ' .. percent .. ' %' })
      return 'moved'
    end
  end
  return 'refused'
end

function effects.ramp_end(q, g)
  local last = q.s.ramp_percents[#q.s.ramp_percents]
  if not step_passed(q, g) or g.ramp < last then return 'refused' end
  g.ramp, g.rollback_reason = nil, nil
  local run = g.run
  g.run = nil
  R.finish(q, run, 'succeeded', { actor = q.a.executor, reason = 'ramp_end' })
  G.move(q, g, 'admit', { reason = 'run_succeeded', actor = q.a.executor, run = run.id })
  return 'ended'
end

function effects.rollback(q, g)
  if not G.is_rollback_reason(q.a.reason) then return 'refused' end
  G.roll_back_run(q, g, q.a.reason, { reason = 'run_rollback', actor = q.a.executor, note = q.a.note or q.a.reason })
  return 'moved'
end

-- Expire now, by deadline class, what could not be done after the recovery: at most 100 a call.
function effects.drain(q)
  local expired, more = J.expire_ready(q, q.now + q.a.keep_ms, 100, 'drain')
  q.answer.expired, q.answer.more = expired, more
  if #expired == 0 then return 'unchanged' end
  q.a.text = #expired .. ' jobs expired'
  return 'moved'
end

-- The backlog is down: from now on the time of the reopening's gate counts, not the burn-down's.
function effects.burned_down(q, g)
  if g.drain_state ~= 'recovering' or not g.green then return 'refused' end
  g.limit_at = q.now + q.s.timings.gate_timeout_ms
  G.save(q, g)
  return 'moved'
end

function effects.canary(q, g)
  if g.drain_state ~= 'recovering' or g.green then return 'refused' end
  local class = q.s.classes[q.a.class]
  local id = 'canary:' .. g.run.id .. ':' .. q.a.class .. ':' .. q.a.n
  if not class or redis.call('EXISTS', J.key(q, id)) == 1 then return 'unchanged' end
  local job = { id = id, state = 'ready', class = q.a.class, cost = class.cost_class, canary = g.run.id, eligible = q.now,
    deadline = q.now + class.deadline_ms }
  redis.call('HSET', J.key(q, id), 'state', 'ready', 'class', job.class, 'cost', job.cost, 'deadline', digits(job.deadline),
    'rev', '1', 'eligible', digits(q.now), 'admitted_at', digits(q.now), 'canary', g.run.id)
  redis.call('SET', J.payload_key(q, id), q.a.payload)
  J.enter(q, job)
  return 'moved'
end

function effects.snapshot(q)
  redis.call('SET', q.p .. 'control:snapshot', digits(q.now))
  return 'moved'
end

-- Point the workers at another provider; they look where it is whenever the gate has moved.
function effects.endpoint(q, g, run)
  local key = q.p .. 'control:endpoint'
  local was = hash_of(key)
  if was.current == q.a.endpoint then return 'unchanged' end
  put('HSET', key, 'last_good', was.current or '', 'current', q.a.endpoint, 'run', run.id)
  return 'moved'
end

-- Point them back at where they were before this run; a run that changed nothing restores nothing.
function effects.restore_endpoint(q, g, run)
  local key = q.p .. 'control:endpoint'
  local was = hash_of(key)
  if was.run ~= run.id then return 'unchanged' end
  put('HSET', key, 'current', was.last_good or '', 'run', '')
  return 'moved'
end

-- Tell people in the runbook's own words.
function R.say(q, g, run)
  R.tell(q, 'said', { run = run.id, runbook = run.runbook, actor = q.a.executor, text = q.a.text })
  return 'moved'
end
effects.notify = R.say

function effects.journal()
  return 'moved'
end

-- After a rollback or an audit the hooks are done: the run ends; the gate stays closed and pinned. `degraded` says that a
-- hook did not succeed: such a run never reads as one that rolled back cleanly.
function effects.finish(q, g)
  if G.recovery_live(g) then return 'refused' end
  local run = g.run
  local state = run.runbook == 'rollback-and-audit' and 'succeeded' or 'rolled_back'
  if run.state == 'rolling_back' and q.a.degraded then state = 'rolled_back_degraded' end
  g.run = nil
  R.finish(q, run, state, { actor = q.a.executor, reason = q.a.note or state })
  return 'ended'
end

local AFTER_ROLLBACK = { journal = effects.journal, finish = effects.finish, notify = effects.notify,
  restore_endpoint = effects.restore_endpoint }

-- The run whose fence the caller holds, and what it may do; nil where it is nobody's or another's by now.
local function owned_run(q, g)
  if R.fenced(q, g.run) then return g.run, G.recovery_live(g) and effects or AFTER_ROLLBACK end
  local beside = R.beside_of(q, q.a.run)
  if R.fenced(q, beside) then return beside, R.beside_effects end
  return nil
end

-- commit_step {executor, run, fence, request, effect, seq, verb, phase, text, detail, …}: one effect and its journal entry
-- in one go, for whoever holds the fence. A repeated request answers the same.
-- -> {answer = moved | unchanged | refused | held | stale | unreadable, epoch, drain_state, …}
function commands.commit_step(q)
  local g = G.read(q)
  if not G.readable(g) then return { answer = 'unreadable', epoch = digits(g.epoch) } end
  local last = hash_of(q.p .. 'run:' .. q.a.run)
  if last.request == q.a.request then return cjson.decode(last.response) end
  G.adopt(q, g)
  local run, may = owned_run(q, g)
  if not run then
    count(q, 'fenced_steps')
    return { answer = 'stale', epoch = digits(g.epoch) }
  end
  q.answer = {}
  local held = run.state == 'running' and R.held_until(run) and not R.may_while_held(q.a)
  local outcome = held and 'held' or may[q.a.effect] and may[q.a.effect](q, g, run) or 'refused'
  q.answer.answer = outcome == 'ended' and 'moved' or outcome
  q.answer.epoch, q.answer.drain_state = digits(g.epoch), g.drain_state
  if outcome == 'moved' then
    redis.call('HSET', q.p .. 'run:' .. run.id, 'step', tostring(q.a.seq), 'verb', q.a.verb)
    if q.a.phase == 'started' then
      redis.call('HSET', q.p .. 'run:' .. run.id, 'step_at', digits(q.now))
      redis.call('HDEL', q.p .. 'run:' .. run.id, 'step_held_ms')
    end
    if q.a.phase == 'done' then R.count_step(q, run, 'done') end
    R.journal(q, run.id, { seq = q.a.seq, verb = q.a.verb, phase = q.a.phase, actor = q.a.executor, text = q.a.text,
      detail = q.a.detail })
  end
  redis.call('HSET', q.p .. 'run:' .. run.id, 'request', q.a.request, 'response', cjson.encode(q.answer))
  return q.answer
end

-- A person's word counts for the step that the run is in, and never for one to come: the path would be called mended
-- before anybody looked. Where canaries are declared they alone are the proof.
local function takes_word(q, run)
  if not run.step or (q.a.step ~= run.verb and q.a.step ~= run.step .. ' ' .. run.verb) then return false end
  if run.verb == 'canary' and q.s and proven_by_canaries(q) then return false end
  for _, entry in ipairs(entries_of({ 'phase' }, { 'seq' }, 'XREVRANGE', q.p .. 'run:' .. run.id .. ':journal', '+', '-')) do
    if entry.seq == run.step and entry.phase == 'done' then return false end
  end
  return true
end

-- approve {run, step, actor, reason}: a person's word for the step that waits for it; the first one counts. A step is named
-- by its verb, or by place and verb (`4 fix`), for a verb may stand twice; it is kept by both. In rollback-and-audit it
-- acknowledges, in the same go, the duplicates known by now and no later one.
-- -> {answer = moved | unchanged | not_waiting | gone}
function commands.approve(q)
  local run = G.live_run(q, text_of(q.p .. 'lock:run'))
  if not run or run.id ~= q.a.run then run = R.beside_of(q, q.a.run) end
  if not run or run.id ~= q.a.run or run.state ~= 'running' then return { answer = 'gone' } end
  if not takes_word(q, run) then return { answer = 'not_waiting' } end
  local key, place = q.p .. 'approval:' .. run.id, run.step .. ' ' .. run.verb
  if put('HSETNX', key, place, q.a.actor .. ': ' .. q.a.reason) == 0 then return { answer = 'unchanged' } end
  redis.call('PEXPIRE', key, R.retention(q))
  local g = G.read(q)
  if run.runbook == 'rollback-and-audit' and run.verb == 'approve' and G.readable(g) then G.acknowledge(q, g) end
  R.journal(q, run.id, { seq = run.step, verb = run.verb, phase = 'approved', actor = q.a.actor, text = run.verb .. ': '
    .. q.a.reason })
  return { answer = 'moved' }
end

-- run {run}: one run with its journal and its approvals by place and verb of their step. Read-only.
-- -> {found, run, journal = [{…}], approvals}
function commands.run(q)
  local run = hash_of(q.p .. 'run:' .. q.a.run)
  if not run.runbook then return { found = false } end
  local journal = entries_of({ 'verb', 'phase', 'actor', 'text', 'detail' }, { 'at', 'seq' }, 'XRANGE', q.p .. 'run:'
    .. q.a.run .. ':journal', '-', '+')
  return { found = true, run = R.shown(run, q.a.run), journal = journal, approvals = hash_of(q.p .. 'approval:' .. q.a.run) }
end
readonly.run = true

-- runs {limit}: runs, newest first. Read-only. -> {runs = [{…}]}
function commands.runs(q)
  local limit, rows = q.a.limit or 20, {}
  for _, key in ipairs({ q.p .. 'runs:recent', q.p .. 'runs:beside' }) do
    for _, id in ipairs(rows_of('ZREVRANGE', key, 0, limit - 1)) do
      local run = hash_of(q.p .. 'run:' .. id)
      if run.runbook then rows[#rows + 1] = R.shown(run, id) end
    end
  end
  table.sort(rows, function(one, other)
    local first, second = tonumber(one.started_at) or 0, tonumber(other.started_at) or 0
    return first == second and one.id > other.id or first > second
  end)
  while #rows > limit do rows[#rows] = nil end
  return { runs = rows }
end
readonly.runs = true

-- endpoint {}: where the workers are pointed at; '' for where their own settings say. Read-only. -> {current, last_good}
function commands.endpoint(q)
  local endpoint = hash_of(q.p .. 'control:endpoint')
  return { current = endpoint.current or '', last_good = endpoint.last_good or '' }
end
readonly.endpoint = true

-- gate_log {limit}: gate moves, newest first. Read-only. -> {entries = [{…}]}
function commands.gate_log(q)
  return { entries = entries_of({ 'from', 'to', 'reason', 'actor', 'pin', 'run', 'note', 'figures' }, { 'at', 'epoch' },
    'XREVRANGE', q.p .. 'control:log', '+', '-', 'COUNT', q.a.limit or 50) }
end
readonly.gate_log = true

-- kill_switch {on, actor, reason}: forbid runs that no named person asked for, roll a live recovery back in the same
-- move, whoever opened it, and end the runs beside it. A run that a person opens afterwards is theirs: nothing binds it. -> {answer}
function commands.kill_switch(q)
  if q.a.on then
    redis.call('SET', q.p .. 'kill', q.a.actor .. ': ' .. q.a.reason)
  else
    redis.call('DEL', q.p .. 'kill')
  end
  if q.a.on then R.end_besides(q, 'aborted', { reason = 'kill_switch_on', actor = q.a.actor, note = q.a.reason }) end
  local g = G.read(q)
  if not G.readable(g) then return { answer = 'moved' } end
  G.adopt(q, g)
  local why = { reason = q.a.on and 'kill_switch_on' or 'kill_switch_off', actor = q.a.actor, note = q.a.reason }
  if q.a.on and G.recovery_live(g) then
    G.roll_back_run(q, g, 'manual_operator_hold', why)
  else
    why.from, why.to = g.drain_state, g.drain_state
    G.log(q, g, why)
  end
  return { answer = 'moved' }
end

end

-- Runs beside the lock-holding one: one of each runbook, under a fence of their own. Of the gate they may move only
-- admit -> reject_new, which the effects below enforce (contract §7).

-- A library has at most 200 local names, so those of this file end with it.
do

local MOST_BESIDE = 16

local function answer_beside(g, id, answer, why)
  return { answer = answer, run = id or '', why = why or '', epoch = digits(g.epoch), drain_state = g.drain_state,
    pin = G.effective_pin(g) }
end

local function refuse(q, g, forbidden)
  count(q, 'runs_refused:' .. forbidden)
  return answer_beside(g, nil, 'refused', forbidden)
end

-- Ask for a run that holds no lock: open_run (run.lua) comes here for every runbook that is not one of the two that do.
-- A refusal never moves the gate, and neither does the opening.
function R.open_beside(q, g)
  local name = q.a.runbook
  if not string.match(name, '^[a-z][a-z0-9-]*$') or #name > 60 then return refuse(q, g, 'no_name') end
  local live, by_machine = R.beside(q, name), q.a.trigger ~= 'person'
  if live and live.id == q.a.run then return answer_beside(g, live.id, 'moved') end -- the same request again
  if by_machine and g.pin then return answer_beside(g, nil, 'suppressed', 'the gate is pinned: ' .. g.pin) end
  if live then
    if by_machine then return answer_beside(g, live.id, 'attached') end
    return answer_beside(g, live.id, 'run_live', 'run ' .. live.id .. ' is live')
  end
  if by_machine then
    if not q.a.confirmed then return answer_beside(g, nil, 'waiting', 'the figures do not confirm it') end
    local forbidden = R.forbidden_to_all(q, name)
    if forbidden then return refuse(q, g, forbidden) end
  end
  if #R.besides(q) >= MOST_BESIDE then return refuse(q, g, 'too_many') end
  local run = R.create_beside(q, { id = q.a.run, runbook = name, trigger = q.a.trigger, actor = q.a.actor,
    reason = q.a.reason, note = q.a.note, digest = q.a.digest, episode = q.a.episode })
  return answer_beside(g, run.id, 'moved')
end

-- What such a run may do; every other effect of commit_step is refused to it.
R.beside_effects = {}

function R.beside_effects.journal()
  return 'moved'
end

-- Looked up when it is called: run.lua has it.
function R.beside_effects.notify(q, g, run)
  return R.say(q, g, run)
end

-- A tighter gate stands as it is. In a ramp the lock-holding run's own gate decides.
function R.beside_effects.reject_new(q, g, run)
  if g.drain_state ~= 'admit' then return 'unchanged' end
  if g.ramp then return 'refused' end
  G.enter_reject(q, g, { reason = 'run_reject', actor = q.a.executor, note = run.runbook, run = run.id })
  return 'moved'
end

local RESULTS = { succeeded = true, failed = true, aborted = true }

function R.beside_effects.finish(q, g, run)
  local result = q.a.result or 'succeeded'
  if not RESULTS[result] then return 'refused' end
  R.finish(q, run, result, { actor = q.a.executor, reason = q.a.note or result })
  return 'ended'
end

-- asked {runbook, keep_ms}: what forbids a run of this runbook that no named person asks for, on this queue ('' for nothing);
-- how many ready and delayed jobs, by class, a drain that keeps those with more than keep_ms left would expire now; and
-- what the contract allows over all queues. Read-only.
-- -> {forbidden, expires = {class = count}, limits = {limit, …} with a contract}
function commands.asked(q)
  if not q.s then return { forbidden = '', expires = {} } end
  local forbid = RUNBOOKS[q.a.runbook] and R.forbidden or R.forbidden_to_all
  local forbidden = q.a.runbook ~= 'rollback-and-audit' and forbid(q, q.a.runbook) or ''
  return { forbidden = forbidden, expires = J.expiring(q, q.now + q.a.keep_ms), limits = R.limits(q) }
end
readonly.asked = true

-- abort_beside {run, actor, reason}: a named person ends a run that holds no lock; the gate stays as it is.
-- -> {answer = moved | gone}
function commands.abort_beside(q)
  local run = q.s and R.beside_of(q, q.a.run)
  if not run then return { answer = 'gone' } end
  R.finish(q, run, 'aborted', { actor = q.a.actor, reason = 'operator_abort', note = q.a.reason })
  return { answer = 'moved' }
end

end

-- What people are told of. A notice is written in the same go as what it tells of, and each receiver reads the stream as
-- a consumer group of its own: what was taken and not told yet stays pending, whoever took it.

-- A library has at most 200 local names, so those of this file end with it.
do

local KEPT = 1000

-- notice: {kind, run, runbook, actor, reason, state, text}; all texts, what is not given is empty.
function R.tell(q, kind, notice)
  put('XADD', q.p .. 'notices', 'MAXLEN', '~', KEPT, '*', 'at', digits(q.now), 'kind', kind, 'run', notice.run or '',
    'runbook', notice.runbook or '', 'actor', notice.actor or '', 'reason', notice.reason or '', 'state',
    notice.state or '', 'text', notice.text or '')
end

-- The words of a run's end: a recovery that succeeded has reopened the gate.
function R.tell_end(q, run, state, why)
  local reopened = run.runbook == 'drain-and-recover' and state == 'succeeded'
  R.tell(q, reopened and 'reopened' or 'ended', { run = run.id, runbook = run.runbook, actor = why.actor, state = state,
    reason = run.rollback_reason, text = why.note or why.reason })
end

-- What changed of the pin with a move: told once, by whoever moved.
function R.tell_pin(q, g, before, why)
  if g.pin == before then return end
  local run = g.run and g.run.id or why.run
  if g.pin then
    R.tell(q, 'pinned', { run = run, actor = why.actor, reason = g.pin, state = g.drain_state, text = g.pin_note })
  else
    R.tell(q, 'released', { run = run, actor = why.actor, reason = before, state = g.drain_state, text = why.note or why.reason })
  end
end

-- still_pinned {}: tell again that a pinned, closed gate waits for a named person. -> {told}
function commands.still_pinned(q)
  local g = G.read(q)
  local pin = G.effective_pin(g)
  if not pin or G.effective(g) == 'admit' then return { told = false } end
  R.tell(q, 'still_pinned', { actor = 'controller', reason = pin, state = G.effective(g), text = g.pin_note })
  return { told = true }
end

local RISING = { unknown = 'queue:unknown', blocked = 'queue:blocked' }

-- rising {}: tell of more unknown or blocked jobs than were told of before; fewer lower what counts as told.
-- -> {told}
function commands.rising(q)
  local key, told = q.p .. 'notices:levels', false
  for kind, name in pairs(RISING) do
    local now, before = put('ZCARD', q.p .. name), whole_number(put('HGET', key, kind) or '0') or 0
    if now ~= before then put('HSET', key, kind, digits(now)) end
    if now > before then
      told = true
      R.tell(q, kind .. '_rising', { actor = 'controller', state = digits(now),
        text = digits(now) .. ' jobs are ' .. kind .. ', ' .. digits(before) .. ' before' })
    end
  end
  return { told = told }
end

local function entry_of(row)
  if not row or not row[2] then return nil end
  local notice = { id = row[1] }
  for i = 1, #row[2], 2 do notice[row[2][i]] = row[2][i + 1] end
  return notice
end

-- The first entry of an answer of XREADGROUP, or nil.
local function first_read(answer)
  if type(answer) ~= 'table' or answer.err or not answer[1] then return nil end
  return answer[1][2][1]
end

-- take_notice {receiver, consumer, idle_ms}: the next one for a receiver: what its consumer holds already, then what
-- another one has held for so long without a word, then a new one. The first call of a receiver begins with what comes
-- after it. -> {found, id, at, kind, run, …}
function commands.take_notice(q)
  local key, a = q.p .. 'notices', q.a
  put('XLEN', key)
  redis.pcall('XGROUP', 'CREATE', key, a.receiver, '$', 'MKSTREAM')
  local row = first_read(redis.pcall('XREADGROUP', 'GROUP', a.receiver, a.consumer, 'COUNT', 1, 'STREAMS', key, '0'))
  if not row then
    local claimed = redis.pcall('XAUTOCLAIM', key, a.receiver, a.consumer, a.idle_ms, '0', 'COUNT', 1)
    row = not claimed.err and claimed[2] and claimed[2][1] or nil
  end
  row = row or first_read(redis.pcall('XREADGROUP', 'GROUP', a.receiver, a.consumer, 'COUNT', 1, 'STREAMS', key, '>'))
  if not row then return { found = false } end
  local notice = entry_of(row)
  if not notice then
    redis.call('XACK', key, a.receiver, row[1]) -- it was trimmed before it was told
    return { found = false, lost = row[1] }
  end
  -- The answer must not depend on the number of tries; a claim without a word keeps it this consumer's.
  redis.pcall('XCLAIM', key, a.receiver, a.consumer, 0, row[1], 'JUSTID')
  notice.found = true
  return notice
end

-- notice_told {receiver, id}: it was told, or nobody will ever take it. -> {told}
function commands.notice_told(q)
  return { told = redis.call('XACK', q.p .. 'notices', q.a.receiver, q.a.id) == 1 }
end

-- notices_waiting {receiver}: how many a receiver was not told of yet, and since when the oldest waits. Read-only.
-- -> {waiting, oldest_at}
function commands.notices_waiting(q)
  local key = q.p .. 'notices'
  local groups = redis.pcall('XINFO', 'GROUPS', key)
  if type(groups) ~= 'table' or groups.err then return { waiting = 0, oldest_at = 0 } end
  for _, flat in ipairs(groups) do
    local group = {}
    for i = 1, #flat, 2 do group[flat[i]] = flat[i + 1] end
    if group.name == q.a.receiver then
      local oldest = redis.pcall('XPENDING', key, q.a.receiver, '-', '+', 1)
      local first = type(oldest) == 'table' and oldest[1] and oldest[1][1] or nil
      local unread = redis.pcall('XRANGE', key, '(' .. group['last-delivered-id'], '+', 'COUNT', KEPT)
      local rest = type(unread) == 'table' and not unread.err and unread or {}
      first = first or (rest[1] and rest[1][1])
      local at = first and tonumber(string.match(first, '^(%d+)%-')) or 0
      return { waiting = group.pending + #rest, oldest_at = at }
    end
  end
  return { waiting = 0, oldest_at = 0 }
end
readonly.notices_waiting = true

end

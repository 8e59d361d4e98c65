-- What holds over all queues of one server (contract §7): under a prefix of its own, so in a cluster in a slot of its own,
-- which no function of a queue can reach. Whoever opens a run asks here first, then there.

-- A library has at most 200 local names, so those of this file end with it.
do

-- A holder is a queue with its run: `runs` is queue → run id and since when, in ms.
local function holders_of(q)
  local rows = {}
  for queue, held in pairs(hash_of(q.p .. 'all:runs')) do
    local run, since = string.match(held, '^(.*)@(%d+)$')
    rows[#rows + 1] = { queue = queue, run = run or held, since = tonumber(since) or 0 }
  end
  return rows
end

local function standing(q)
  return { at = q.now, kill = text_of(q.p .. 'all:kill') or '', breaker = text_of(q.p .. 'all:breaker') or '',
    holders = holders_of(q), asked = rows_of('ZRANGE', q.p .. 'all:asked', 0, -1) }
end

-- all_queues {}: the switch, the breaker, the live runs and the queues that asked lately. Read-only.
-- -> {at, kill, breaker, holders = [{queue, run, since}], asked = [queue]}
function commands.all_queues(q)
  return standing(q)
end
readonly.all_queues = true

-- What many queues ask for at once is more likely a fault of the monitoring than of them all.
local function storm(q)
  put('ZADD', q.p .. 'all:asked', q.now, q.a.queue)
  put('ZREMRANGEBYSCORE', q.p .. 'all:asked', '-inf', '(' .. digits(q.now - q.a.storm_ms))
  local asked = put('ZCARD', q.p .. 'all:asked')
  if asked < q.a.storm_queues then return end
  local said = asked .. ' queues asked for a run within ' .. digits(q.a.storm_ms / 1000) .. ' s'
  redis.call('SET', q.p .. 'all:breaker', digits(q.now) .. ' ' .. said)
  A.write(q, 'all_queues', 'what', 'breaker_tripped', 'actor', 'sluicegate', 'note', said)
end

-- permit {queue, run, limit, storm_queues, storm_ms, gone = [{queue, run}]}: may a run be opened that no named person
-- asked for? `gone` are runs that the asker has seen to be over. A permit is kept until its run is over.
-- -> {answer = granted | kill_switch | breaker | concurrent_runs, …as all_queues}
function commands.permit(q)
  local key = q.p .. 'all:runs'
  for _, over in ipairs(q.a.gone or {}) do
    local held = put('HGET', key, over.queue)
    if held and string.match(held, '^(.*)@%d+$') == over.run then redis.call('HDEL', key, over.queue) end
  end
  local answer
  if redis.call('EXISTS', q.p .. 'all:kill') == 1 then
    answer = 'kill_switch'
  else
    if redis.call('EXISTS', q.p .. 'all:breaker') == 0 then storm(q) end
    local others = put('HLEN', key) - put('HEXISTS', key, q.a.queue)
    if redis.call('EXISTS', q.p .. 'all:breaker') == 1 then
      answer = 'breaker'
    elseif others >= q.a.limit then
      answer = 'concurrent_runs'
    else
      put('HSET', key, q.a.queue, q.a.run .. '@' .. digits(q.now))
      answer = 'granted'
    end
  end
  local body = standing(q)
  body.answer = answer
  return body
end

-- hold_place {queue, run}: count a live run, whether it had a permit or needed none. -> {}
function commands.hold_place(q)
  local key = q.p .. 'all:runs'
  local held = put('HGET', key, q.a.queue)
  if not held or string.match(held, '^(.*)@%d+$') ~= q.a.run then
    put('HSET', key, q.a.queue, q.a.run .. '@' .. digits(q.now))
  end
  return { held = true }
end

-- leave_place {queue, run}: the run is over, or was not opened after all. -> {left}
function commands.leave_place(q)
  local key = q.p .. 'all:runs'
  local held = put('HGET', key, q.a.queue)
  if not held or string.match(held, '^(.*)@%d+$') ~= q.a.run then return { left = false } end
  redis.call('HDEL', key, q.a.queue)
  return { left = true }
end

-- kill_all {on, actor, reason}: forbid runs that no named person asked for, on every queue of this server. The executors
-- roll live recoveries back at their next look. -> {answer}
function commands.kill_all(q)
  if q.a.on then
    redis.call('SET', q.p .. 'all:kill', digits(q.now) .. ' ' .. q.a.actor .. ': ' .. q.a.reason)
  else
    redis.call('DEL', q.p .. 'all:kill')
  end
  A.write(q, 'all_queues', 'what', q.a.on and 'kill_switch_on' or 'kill_switch_off', 'actor', q.a.actor, 'note', q.a.reason)
  return { answer = 'moved' }
end

-- reset_breaker {actor, reason}: let runs be opened again after a storm. -> {answer = moved | unchanged}
function commands.reset_breaker(q)
  redis.call('DEL', q.p .. 'all:asked')
  if redis.call('DEL', q.p .. 'all:breaker') == 0 then return { answer = 'unchanged' } end
  A.write(q, 'all_queues', 'what', 'breaker_reset', 'actor', q.a.actor, 'note', q.a.reason)
  return { answer = 'moved' }
end

end

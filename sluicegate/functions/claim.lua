-- claim worker request slots version: give a worker up to `slots` jobs (100; of large payloads fewer, and then it wakes a
-- worker for the rest) and confirm the gate's epoch for it. A repeated request id answers the same jobs. Starts no job
-- under the slack margin; obeys the gate and the limits; passes over what is full. With 0 slots it only confirms.
-- -> at, drain_state, epoch, green (0 | 1), how many jobs, how many expired; then each job: id, class, cost, deadline,
-- attempt, retries, fence, epoch, window, effects, canary, payload; then each that expired: id, class, attempt, slack_ms

local MOST = 100
local BYTES_ENOUGH = 524288 -- of payloads: a call stays short, whatever its jobs carry
local AHEAD = 16 -- how many of a pair are looked up at once

local function hand(q, list, job)
  local n = #list
  list[n + 1], list[n + 2], list[n + 3], list[n + 4] = job.id, job.declared or job.class, job.cost, job.deadline
  list[n + 5], list[n + 6], list[n + 7], list[n + 8] = job.attempt, job.retries, digits(job.fence), job.epoch
  list[n + 9], list[n + 10] = job.window, J.effects(q, job.class)
  list[n + 11], list[n + 12] = job.canary or '', job.payload
end

-- '' where it has none; MGET passes over a key that somebody made another type of, where GET would end the call.
local function payload_of(q, job)
  return redis.call('MGET', J.payload_key(q, job.id))[1] or ''
end

-- q.start holds the texts that all jobs of a call share.
local function start(q, g, job, worker)
  if not q.start then
    q.start = { us = digits(q.us), now = digits(q.now), lease_end = digits(q.now + q.s.lease_ms), epoch = digits(g.epoch),
      window = g.window ~= '' and g.window or '0' }
  end
  local s, fence, attempt = q.start, math.max(job.fence + 1, q.us), job.attempt + 1
  job.fence, job.fence_text, job.attempt, job.epoch, job.window = fence, fence == q.us and s.us or digits(fence), attempt,
    s.epoch, s.window
  job.lease_end = s.lease_end
  J.move_with(q, job, 'running', { 'lease_end', s.lease_end, 'started_at', s.now, 'window', s.window, 'attempt',
    digits(attempt), 'epoch', s.epoch, 'worker', worker, 'fence', job.fence_text })
end

-- How many more may run: of a class, of a cost class; counted once a call, then kept.
local function room(q, key, limit)
  if not limit or limit.max_running == 0 then return math.huge end
  q.room[key] = q.room[key] or limit.max_running - redis.call('ZCARD', key)
  return q.room[key]
end

local function full(q, pair)
  return room(q, J.keys(q, pair.class, pair.cost).running, q.s.classes[pair.class]) <= 0
    or room(q, q.p .. 'running:cost:' .. pair.cost, q.s.cost_classes[pair.cost]) <= 0
end

local function took(q, pair)
  for _, key in ipairs({ q.p .. 'running:' .. pair.class, q.p .. 'running:cost:' .. pair.cost }) do
    if q.room[key] then q.room[key] = q.room[key] - 1 end
  end
end

-- The next of a pair: its id and its score, or nil. Those that were taken are still in the index, before `seen`.
local function head(q, pair, ahead)
  if pair.done then return nil end
  if not pair.next or pair.next > #pair.found then
    local family = q.s.dispatch == 'edf' and q.p .. 'queue:ready:' or q.p .. 'queue:fifo:'
    pair.found = redis.call('ZRANGE', family .. pair.name, pair.seen or 0, (pair.seen or 0) + ahead - 1, 'WITHSCORES')
    pair.seen, pair.next = (pair.seen or 0) + #pair.found / 2, 1
    pair.done = #pair.found == 0
    if pair.done then return nil end
  end
  return pair.found[pair.next], tonumber(pair.found[pair.next + 1])
end

-- The pair, not full, whose head is oldest or, with earliest deadline first, due first.
local function best_pair(q, ahead)
  local best, best_score
  for _, pair in ipairs(J.pairs(q)) do
    local id, score = head(q, pair, ahead)
    if id and (not best_score or score < best_score) and not full(q, pair) then best, best_score = pair, score end
  end
  return best
end

local function take_canaries(q, slots)
  local ids, place = redis.call('ZRANGE', q.p .. 'queue:canary', 0, MOST - 1), 0
  return function()
    place = place + 1
    return ids[place]
  end, slots
end

local function take_backlog(q, slots)
  local running = redis.call('ZCARD', q.p .. 'queue:leases') - redis.call('ZCARD', q.p .. 'running:canary')
  local ahead = math.min(slots, AHEAD)
  q.room = {}
  return function()
    local pair = best_pair(q, ahead)
    if not pair then return nil end
    local id = pair.found[pair.next]
    pair.next = pair.next + 2
    return id, pair
  end, math.min(slots, q.s.max_running - running)
end

local function nothing() return nil end

-- What may be pulled under this gate, one by one, and how many of it.
local function source(q, g, slots)
  local gate = G.effective(g)
  if gate == 'drain' then return nothing, 0 end
  if gate == 'recovering' and not g.green then return take_canaries(q, slots) end
  return take_backlog(q, slots)
end

local function expire(q, job, expired)
  local n = #expired
  expired[n + 1], expired[n + 2], expired[n + 3], expired[n + 4] = job.id, job.class, job.attempt, job.deadline - q.now
  J.finish(q, job, 'expired', 'claim')
  if job.canary then G.canary_result(q, job, false, 'expired') end
end

-- The job that is next, or nil where its record says otherwise.
local function named(q, id, pair)
  return J.named(q, q.p .. (pair and 'queue:fifo:' .. pair.name or 'queue:canary'), id, 'ready')
end

local function pull(q, g, worker, slots)
  local jobs, expired, looked, bytes = {}, {}, 0, 0
  local take, allowed = source(q, g, slots)
  while #jobs < allowed and looked < MOST do
    if bytes >= BYTES_ENOUGH then
      q.woken = q.woken + 1
      break
    end
    looked = looked + 1
    local id, pair = take()
    if not id then break end
    local job = named(q, id, pair)
    if job and job.deadline - q.now < q.s.timings.margin_ms then
      expire(q, job, expired)
    elseif job then
      start(q, g, job, worker)
      if pair then took(q, pair) end
      jobs[#jobs + 1] = job
      job.payload = payload_of(q, job)
      bytes = bytes + #job.payload
    end
  end
  return jobs, expired
end

-- The jobs of the same request before that are still held by it, or nil where it is new.
local function repeated(q, worker, request)
  local last = put('HMGET', q.p .. 'worker:' .. worker, 'request', 'claimed')
  if last[1] ~= request then return nil end
  local jobs = {}
  for id, fence in string.gmatch(last[2] or '', '(%S+)=(%d+)') do
    local job = J.read(q, id)
    if job and job.state == 'running' and digits(job.fence) == fence then
      job.payload = payload_of(q, job)
      jobs[#jobs + 1] = job
    end
  end
  return jobs
end

local function remember(q, g, worker, request, version, jobs)
  local claimed, key = {}, q.p .. 'worker:' .. worker
  for i, job in ipairs(jobs) do claimed[i] = job.id .. '=' .. job.fence_text end
  redis.call('HSET', key, 'epoch', digits(g.epoch), 'request', request, 'claimed', table.concat(claimed, ' '), 'seen',
    digits(q.now), 'version', version or '', 'drain_state', G.effective(g))
  redis.call('PEXPIRE', key, 60000)
end

function commands.claim(q)
  local g, worker, request = G.glance(q), q.v[3], q.v[4]
  local list = { q.now, G.effective(g), digits(g.epoch), g.green and 1 or 0, 0, 0 }
  if g.stored == 'uninitialised' or not q.s then return list end
  G.note_behind(q, g)
  put('ZADD', q.p .. 'workers', q.now, worker)
  local jobs, expired = repeated(q, worker, request), {}
  if not jobs then
    jobs, expired = pull(q, g, worker, math.min(tonumber(q.v[5]) or 0, MOST))
    remember(q, g, worker, request, q.v[6], jobs)
  end
  list[5], list[6] = #jobs, #expired / 4
  for _, job in ipairs(jobs) do hand(q, list, job) end
  for _, value in ipairs(expired) do list[#list + 1] = value end
  return list
end
hot.claim = true

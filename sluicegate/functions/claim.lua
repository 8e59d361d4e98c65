-- claim {worker, request, slots, version}: give a worker up to `slots` jobs and confirm the gate's epoch for it. A
-- repeated request id answers the same jobs. Starts no job under the slack margin; obeys the gate and the limits.
-- With 0 slots it only confirms. -> {at, drain_state, epoch, green, jobs = [...], expired = [event]}

local function handed(q, job)
  local class = q.s.classes[job.class]
  return { id = job.id, class = job.class, cost = job.cost, deadline = job.deadline, attempt = job.attempt,
    retries = job.retries, key = job.key, fence = digits(job.fence), epoch = job.epoch, window = job.window,
    effects = class and class.effects or 'keyed', canary = job.canary or '',
    payload = text_of(J.key(q, job.id) .. ':payload') or '' }
end

local function start(q, g, job)
  local fence = math.max(job.fence + 1, q.us)
  J.move(q, job, 'running', { fence = fence, attempt = job.attempt + 1, worker = q.a.worker, started_at = q.now,
    lease_end = q.now + q.s.lease_ms, epoch = digits(g.epoch), window = g.window ~= '' and g.window or '0' })
  return handed(q, job)
end

local function full(q, class, cost)
  local declared, costly = q.s.classes[class], q.s.cost_classes[cost]
  if declared and declared.max_running > 0 and redis.call('ZCARD', q.p .. 'running:' .. class) >= declared.max_running then
    return true
  end
  return costly and costly.max_running > 0
    and redis.call('ZCARD', q.p .. 'running:cost:' .. cost) >= costly.max_running
end

-- The oldest head among the pairs of class and cost class that are not full.
local function oldest_head(q)
  local best, best_since
  local costs = { '-' }
  for cost in pairs(q.s.cost_classes) do costs[#costs + 1] = cost end
  local classes = {}
  for class in pairs(q.s.classes) do classes[#classes + 1] = class end
  if not q.s.strict_classes then classes[#classes + 1] = 'other' end
  for _, class in ipairs(classes) do
    for _, cost in ipairs(costs) do
      local head = redis.call('ZRANGE', q.p .. 'queue:fifo:' .. class .. ':' .. cost, 0, 0, 'WITHSCORES')
      local since = tonumber(head[2])
      if since and (not best_since or since < best_since) and not full(q, class, cost) then
        best, best_since = head[1], since
      end
    end
  end
  return best
end

local function next_id(q, g)
  local gate = G.effective(g)
  if gate == 'drain' then return nil end
  if gate == 'recovering' and not g.green then return redis.call('ZRANGE', q.p .. 'queue:canary', 0, 0)[1] end
  local running = redis.call('ZCARD', q.p .. 'queue:leases') - redis.call('ZCARD', q.p .. 'running:canary')
  if running >= q.s.max_running then return nil end
  return oldest_head(q)
end

local function repeated(q)
  local last = hash_of(q.p .. 'worker:' .. q.a.worker)
  if last.request ~= q.a.request then return nil end
  local jobs = {}
  for id, fence in string.gmatch(last.claimed or '', '(%S+)=(%d+)') do
    local job = J.read(q, id)
    if job and job.state == 'running' and digits(job.fence) == fence then jobs[#jobs + 1] = handed(q, job) end
  end
  return jobs
end

function commands.claim(q)
  local g = G.read(q)
  local answer = { at = q.now, drain_state = G.effective(g), epoch = digits(g.epoch), green = g.green, jobs = {}, expired = {} }
  if g.stored == 'uninitialised' or not q.s then return answer end
  redis.call('ZADD', q.p .. 'workers', q.now, q.a.worker)
  local before = repeated(q)
  if before then
    answer.jobs = before
    return answer
  end
  local jobs, expired, claimed = {}, {}, {}
  local slots, looked = math.min(q.a.slots, 100), 0
  while #jobs < slots and looked < 100 do
    looked = looked + 1
    local id = next_id(q, g)
    if not id then break end
    local job = J.read(q, id)
    if not job then error('container names job ' .. id .. ', which has no record') end
    if job.deadline - q.now < q.s.timings.margin_ms then
      expired[#expired + 1] = J.event(q, job)
      J.finish(q, job, 'expired', 'claim')
      if job.canary then G.canary_result(q, job, false, 'expired') end
    else
      jobs[#jobs + 1] = start(q, g, job)
      claimed[#claimed + 1] = id .. '=' .. jobs[#jobs].fence
    end
  end
  redis.call('HSET', q.p .. 'worker:' .. q.a.worker, 'epoch', digits(g.epoch), 'request', q.a.request, 'claimed',
    table.concat(claimed, ' '), 'seen', digits(q.now), 'version', q.a.version or '', 'drain_state', answer.drain_state)
  redis.call('PEXPIRE', q.p .. 'worker:' .. q.a.worker, 60000)
  answer.jobs, answer.expired = jobs, expired
  return answer
end

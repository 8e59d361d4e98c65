-- The backlog limit (contract §5): what a class may have waiting, by the wait that it predicts. `limit` holds what one call of
-- admit has looked up, and what it has accepted.

local B = {}

local function limit_of(load)
  if not load.limit then load.limit = { each_ms = {}, due = {}, taken = {}, reserve = nil, shortest = nil, due_first = nil } end
  return load.limit
end

-- What a job keeps beside its wait, in ms: one time for all classes. By deadline, the heads of all classes come up with
-- the same slack; were it a part of each class's own time, the longer ones would be filled to less of their share.
local function reserve_of(q, limit)
  if not limit.reserve then
    local shortest = math.huge
    for name, class in pairs(q.s.classes) do
      if class.deadline_ms < shortest then
        shortest, limit.due_first = class.deadline_ms, name
      elseif class.deadline_ms == shortest then
        limit.due_first = nil
      end
    end
    limit.shortest = shortest - q.s.timings.margin_ms
    limit.reserve = (1 - q.s.backlog_limit) * limit.shortest
  end
  return limit.reserve
end

local function service_ms(q, limit, class)
  limit.each_ms[class] = limit.each_ms[class] or F.service_ms(q, class)
  return limit.each_ms[class]
end

-- The waiting work that is due by an instant, in ms of one slot; what this call has accepted is in no index yet.
local function due_by(q, limit, instant)
  if limit.due[instant] then return limit.due[instant] end
  local work, at = 0, digits(instant)
  for _, pair in ipairs(J.pairs(q)) do
    work = work + redis.call('ZCOUNT', q.p .. 'queue:ready:' .. pair.name, '-inf', at) * service_ms(q, limit, pair.class)
  end
  for _, class in ipairs(J.classes(q)) do
    work = work + redis.call('ZCOUNT', q.p .. 'queue:delayed:' .. class, '-inf', at) * service_ms(q, limit, class)
  end
  for _, job in ipairs(limit.taken) do
    if job.deadline <= instant then work = work + service_ms(q, limit, job.class) end
  end
  limit.due[instant] = work
  return work
end

local function too_much_due_by(q, limit, instant)
  local work = due_by(q, limit, instant)
  return work > 0 and work > q.s.max_running * (instant - q.now - q.s.timings.margin_ms - reserve_of(q, limit))
end

-- Whether the jobs of this class, at its share of the workers, take longer than what a job has until its reserve: each
-- class has its share, whoever else asks. By age all wait alike, so none may count on more time than the shortest has.
-- By deadline a class that has waited long comes up all at once and takes more than its share, and what is accepted
-- now goes before what is due later: so beside the share, what is due by this deadline, and by the ends of all longer
-- classes, must fit into all slots. Those two rules are enough for the class that alone has the shortest deadline: it goes
-- first, and the others keep their shares, for what of it would make them late is refused. Held to its share it would be
-- refused in a burst while the slots have time for it before the others come due.
function B.full(q, load, class, waiting, deadline)
  local declared, left = q.s.classes[class], deadline - q.now - q.s.timings.margin_ms
  if left <= 0 or not declared then return left <= 0 end
  local limit, by_deadline = limit_of(load), q.s.dispatch == 'edf'
  local reserve = reserve_of(q, limit)
  local may_wait = (by_deadline and left or math.min(left, limit.shortest)) - reserve
  local goes_first = by_deadline and class == limit.due_first and deadline <= q.now + declared.deadline_ms
  local wait = waiting * service_ms(q, limit, class) / (q.s.max_running * declared.share)
  if waiting > 0 and wait > may_wait and not goes_first then return true end
  if not by_deadline then return false end
  if too_much_due_by(q, limit, deadline) then return true end
  for _, other in pairs(q.s.classes) do
    local ends_at = q.now + other.deadline_ms
    if ends_at > deadline and too_much_due_by(q, limit, ends_at) then return true end
  end
  return false
end

-- Keep in mind what this call accepts.
function B.take(q, load, class, deadline)
  local limit = limit_of(load)
  limit.taken[#limit.taken + 1] = { class = class, deadline = deadline }
  for instant, work in pairs(limit.due) do
    if deadline <= instant then limit.due[instant] = work + service_ms(q, limit, class) end
  end
end

-- The backlog limit (contract §5): what a class may have waiting, by the wait that it predicts. `limit` holds what one call of
-- admit has looked up, and what it has accepted.

local B = {}

local function limit_of(load)
  if not load.limit then
    load.limit = { each_ms = {}, due = {}, taken = {}, delayed = load.delayed ~= 0, reserve = nil, shortest = nil,
      longest = nil, due_first = nil }
  end
  return load.limit
end

-- What a job keeps beside its wait, in ms: one time for all classes. By deadline, the heads of all classes come up with
-- the same slack; were it a part of each class's own time, the longer ones would be filled to less of their share.
local function reserve_of(q, limit)
  if not limit.reserve then
    local shortest, longest = math.huge, 0
    for name, class in pairs(q.s.classes) do
      longest = math.max(longest, class.deadline_ms)
      if class.deadline_ms < shortest then
        shortest, limit.due_first = class.deadline_ms, name
      elseif class.deadline_ms == shortest then
        limit.due_first = nil
      end
    end
    limit.shortest, limit.longest = shortest - q.s.timings.margin_ms, longest
    limit.reserve = (1 - q.s.backlog_limit) * limit.shortest
  end
  return limit.reserve
end

local function service_ms(q, limit, class)
  limit.each_ms[class] = limit.each_ms[class] or F.service_ms(q, class)
  return limit.each_ms[class]
end

-- The waiting work that is due by an instant, in ms of one slot, all of it by math.huge; what this call has accepted is in no
-- index yet.
local function due_by(q, limit, instant)
  if limit.due[instant] then return limit.due[instant] end
  local work, at = 0, instant == math.huge and '+inf' or digits(instant)
  for _, pair in ipairs(J.pairs(q)) do
    work = work + redis.call('ZCOUNT', q.p .. 'queue:ready:' .. pair.name, '-inf', at) * service_ms(q, limit, pair.class)
  end
  for _, class in ipairs(limit.delayed and J.classes(q) or {}) do
    work = work + redis.call('ZCOUNT', q.p .. 'queue:delayed:' .. class, '-inf', at) * service_ms(q, limit, class)
  end
  for _, job in ipairs(limit.taken) do
    if job.deadline <= instant then work = work + service_ms(q, limit, job.class) end
  end
  limit.due[instant] = work
  return work
end

-- Whether all slots can do so much work by an instant, less margin and reserve.
local function fits(q, limit, work, instant)
  return work <= 0 or work <= q.s.max_running * (instant - q.now - q.s.timings.margin_ms - reserve_of(q, limit))
end

-- Looks from a deadline to the end of the longest class, and by how much further off each is at least.
local MOST_STEPS, LEAST_GROWTH = 20, 1 / 8

-- Whether what is due from a deadline on has become too much: by the deadline, by the ends of all longer classes, where what
-- has come lately is due, and by instants in between, further and further apart, where it is due that long ago came all at
-- once; until the rest fits wherever it is due.
local function too_much_ahead(q, limit, deadline)
  local all, at, last = due_by(q, limit, math.huge), deadline, q.now + limit.longest
  local growth = math.max(LEAST_GROWTH, ((last - q.now) / (deadline - q.now)) ^ (1 / MOST_STEPS) - 1)
  while not fits(q, limit, all, at) do
    if not fits(q, limit, due_by(q, limit, at), at) then return true end
    if at >= last then return false end
    local after = at + math.ceil(math.max(limit.shortest / 2, (at - q.now) * growth))
    for _, class in pairs(q.s.classes) do
      local ends_at = q.now + class.deadline_ms
      if ends_at > at then after = math.min(after, ends_at) end
    end
    at = after
  end
  return false
end

-- Whether the jobs of this class, at its share of the workers, take longer than what a job has until its reserve: each
-- class has its share, whoever else asks. By age all wait alike, so none may count on more time than the shortest has.
-- By deadline a class that has waited long comes up all at once and takes more than its share, and what is accepted
-- now goes before what is due later: so beside the share, what is due by this deadline, and by any instant after it, must fit
-- into all slots. That is enough for the class that alone has the shortest deadline: it goes first, and the others keep
-- their shares, for what of it would make them late is refused. Held to its share it would be refused in a burst while the
-- slots have time for it before the others come due.
function B.full(q, load, class, waiting, deadline)
  local declared, left = q.s.classes[class], deadline - q.now - q.s.timings.margin_ms
  if left <= 0 or not declared then return left <= 0 end
  local limit, by_deadline = limit_of(load), q.s.dispatch == 'edf'
  local reserve = reserve_of(q, limit)
  local may_wait = (by_deadline and left or math.min(left, limit.shortest)) - reserve
  local goes_first = by_deadline and class == limit.due_first and deadline <= q.now + declared.deadline_ms
  local wait = waiting * service_ms(q, limit, class) / (q.s.max_running * declared.share)
  if waiting > 0 and wait > may_wait and not goes_first then return true end
  return by_deadline and too_much_ahead(q, limit, deadline)
end

-- Keep in mind what this call accepts.
function B.take(q, load, class, deadline)
  local limit = limit_of(load)
  limit.taken[#limit.taken + 1] = { class = class, deadline = deadline }
  for instant, work in pairs(limit.due) do
    if deadline <= instant then limit.due[instant] = work + service_ms(q, limit, class) end
  end
end

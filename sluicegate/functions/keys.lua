-- What stands under the queue's names: for `queue doctor`, which must work where a key of another type stops the rest.

-- clock {}: the server's clock; needs no key. Read-only. -> {at}
function commands.clock(q)
  return { at = q.now }
end
readonly.clock = true

local KEYS_A_CALL = 500

local function quoted(text)
  return (string.gsub(text, '[%[%]%*%?%^\\%-]', '\\%0'))
end

local function wanted_type(name, types, families)
  if types[name] then return types[name] end
  for _, family in ipairs(families) do
    local start, ending = family[1], family[2]
    if string.sub(name, 1, #start) == start and (ending == '' or string.sub(name, -#ending) == ending) then
      return family[3]
    end
  end
  return nil
end

-- Whether a key is one that only version 1 of the layout had: its decisions lay beside the jobs.
local function of_old_layout(key, name, kind)
  for _, old in ipairs(OLD_TRACES) do
    if name == old or string.sub(name, 1, #old + 1) == old .. ':' then return true end
  end
  return string.sub(name, 1, 5) == 'idem:' and kind == 'hash' and redis.call('HEXISTS', key, 'fp') == 1
end

-- The container that an open job's record says it is in, or nil for one that is in none: final, refused, damaged. One
-- that runs gets its place among the leases back from the next sweep.
local function container_of(job)
  local state, class = job[1], job[2]
  if not state or state == 'running' or FINAL[state] or not JOB_MOVES[state] then return nil end
  if state == 'ready' then
    return none(job[4] or nil) and 'queue:canary' or 'queue:fifo:' .. (class or '') .. ':' .. (job[3] or '-')
  end
  return 'queue:' .. state
end

-- Whether a container of the right type does not name the job whose record stands in it.
local function lost(q, key, name)
  local container = container_of(redis.call('HMGET', key, 'state', 'class', 'cost', 'canary'))
  local score = container and redis.pcall('ZSCORE', q.p .. container, string.sub(name, 5))
  return score == false and container or nil
end

-- wrong_types {cursor, types = {name = type}, families = [[start, end, type]]}: go through the server's keys, about 500 a
-- call, beginning with cursor 0 and ending with it; whose type is another than the names say, which are of version 1, and
-- which jobs no container names though their record says so. Read-only.
-- -> {cursor, wrong = [[name, type, wanted]], old = [name], lost = [[id, container]]}
function commands.wrong_types(q)
  local page = redis.call('SCAN', q.a.cursor, 'MATCH', quoted(q.p) .. '*', 'COUNT', KEYS_A_CALL)
  local wrong, old, missing = {}, {}, {}
  for _, key in ipairs(page[2]) do
    local name = string.sub(key, #q.p + 1)
    -- Under the empty prefix there are other queues, and strangers.
    if q.p ~= '' or string.sub(name, 1, 1) ~= '{' then
      local wanted, kind = wanted_type(name, q.a.types, q.a.families), redis.call('TYPE', key).ok
      if wanted and kind ~= wanted and kind ~= 'none' then wrong[#wrong + 1] = { key, kind, wanted } end
      if of_old_layout(key, name, kind) then old[#old + 1] = key end
      local container = kind == 'hash' and string.sub(name, 1, 4) == 'job:' and lost(q, key, name)
      if container then missing[#missing + 1] = { string.sub(name, 5), container } end
    end
  end
  return { cursor = page[1], wrong = wrong, old = old, lost = missing }
end
readonly.wrong_types = true

-- What every command shares: the call's frame, the stored settings, and how figures are written.
--
-- Calling convention, the same for all commands:
--   KEYS[1]  P .. "control:gate": routes the call; all keys of a queue share one hash tag
--   ARGV[1]  P, the queue's prefix
--   ARGV[2]  the highest epoch the caller has seen, "0" for none
--   ARGV[3]  the command's arguments as a JSON object; a hot command has its arguments one by one from here on
-- A command answers one JSON object (an empty list is encoded as {}); a hot one answers one flat list, as its header
-- says. Epochs, fences and windows are µs and travel as strings: cjson keeps 14 digits.

local commands, readonly, hot = {}, {}, {}
local G, J, F, R, A = {}, {}, {}, {}, {} -- gate, jobs, figures, runs, audit

-- A library outlives its calls, so what is parsed is kept, by what it was parsed from: that of as many queues as one server
-- is likely to have. A script parses it each time.
local MOST_KEPT = 64

-- Keep a value under a key; kept = { by = what is kept, n = how many }.
local function keep(kept, key, value)
  if not kept.by[key] then
    if kept.n == MOST_KEPT then kept.by, kept.n = {}, 0 end
    kept.n = kept.n + 1
  end
  kept.by[key] = value
  return value
end

-- What is known of a queue from its last call on; none of it counts before it was compared with what is stored.
local queues_kept = { by = {}, n = 0 }

local function keys_of(p)
  return setmetatable({}, { __index = function(keys, name)
    keys[name] = p .. name
    return keys[name]
  end })
end

-- keys: the full name of each key that a queue has once, made where it is first used.
local function known_of(q)
  if not q.known then q.known = queues_kept.by[q.p] or keep(queues_kept, q.p, { keys = keys_of(q.p) }) end
  return q.known
end

local settings_kept = { by = {}, n = 0 }

-- The settings, parsed, and their digest.
local function settings_of(p)
  local digest = redis.pcall('HGET', p .. 'queue:settings', 'digest')
  if settings_kept.by[digest] then return settings_kept.by[digest], digest end
  if type(digest) ~= 'string' then return nil end
  local text = redis.call('HGET', p .. 'queue:settings', 'contract')
  local whole, parsed = pcall(cjson.decode, text or '')
  if not whole or type(parsed) ~= 'table' then return nil end
  for _, name in ipairs({ 'classes', 'cost_classes', 'thresholds', 'timings', 'ramp_percents' }) do
    if type(parsed[name]) ~= 'table' then return nil end
  end
  return keep(settings_kept, digest, parsed), digest
end

-- A whole number as text: tostring loses digits above 2^46. Small ones are counts and come all the time, so they are kept.
local digits
do
  local small -- made by the first call: while a library is loaded there is no `string`
  digits = function(number)
    if not small then
      small = {}
      for each = 0, 99 do small[each] = string.format('%d', each) end
    end
    return small[number] or string.format('%d', number)
  end
end

local function open_call(args)
  local time = redis.call('TIME')
  local us = tonumber(time[1]) * 1000000 + tonumber(time[2])
  local p = args[1]
  local settings, digest = settings_of(p)
  return {
    p = p,
    seen = tonumber(args[2]) or 0,
    us = us,
    now = math.floor(us / 1000),
    v = args,
    s = settings,
    digest = digest,
    counted = {},
    lifetimes = {},
    woken = 0,
  }
end

local function text_of(key)
  local value = redis.pcall('GET', key)
  if type(value) == 'string' then return value end
  return nil
end

local function hash_of(key)
  local flat = redis.pcall('HGETALL', key)
  local map = {} -- an error has no entries
  for i = 1, #flat, 2 do map[flat[i]] = flat[i + 1] end
  return map
end

-- A whole number as this library writes it; tonumber alone would take 'nan' and '0x10' too, and lose digits above 2^53.
local function whole_number(text)
  if text == '0' then return 0 end
  if type(text) == 'string' and #text < 17 and string.match(text, '^%d+$') then return tonumber(text) end
  return nil
end

-- Write to a record of this library, or read one in a command that writes; what somebody put there of another type
-- goes, or no gate could close any more.
local function put(command, key, ...)
  local answer = redis.pcall(command, key, ...)
  if type(answer) ~= 'table' or not answer.err then return answer end
  if not string.find(answer.err, 'WRONGTYPE', 1, true) then return error(answer.err) end
  redis.call('DEL', key)
  return redis.call(command, key, ...)
end

-- A list for a reader, who can take nothing away: empty where something of another type stands.
local function rows_of(command, key, ...)
  local rows = redis.pcall(command, key, ...)
  if type(rows) ~= 'table' or rows.err then return {} end
  return rows
end

-- The entries of a stream of this library, with these fields and with these numbers; what somebody else added to it is
-- left out.
local function entries_of(fields, numbers, command, key, ...)
  local rows = {}
  for _, entry in ipairs(rows_of(command, key, ...)) do
    local row, ours = { id = entry[1] }, true
    for i = 1, #entry[2], 2 do row[entry[2][i]] = entry[2][i + 1] end
    for _, name in ipairs(fields) do ours = ours and row[name] ~= nil end
    for _, name in ipairs(numbers) do ours = ours and whole_number(row[name]) ~= nil end
    if ours then rows[#rows + 1] = row end
  end
  return rows
end

local function none(value)
  if value == nil or value == '' then return nil end
  return value
end

-- Counters are added up within a call and written at its end: a batch costs one command a counter. Where q.counted is gone,
-- as for the admission of a single job, they are written at once. A counter that somebody overwrote must not keep a gate
-- from closing.
local function count_in(q, key, name, by)
  if not q.counted then
    redis.pcall('HINCRBY', key, name, by or '1')
    return
  end
  local counted = q.counted[key]
  if not counted then
    q.counted[key] = { [name] = by or 1 }
    return
  end
  counted[name] = (counted[name] or 0) + (by or 1)
end

local function count(q, name, by)
  q.counters = q.counters or q.p .. 'counters'
  count_in(q, q.counters, name, by)
end

-- What the contract does not declare, or not any more, counts as one class: a name from outside is no key.
local OTHER = 'other'

local function count_class(q, class, name, by)
  count_in(q, q.p .. 'counters:' .. (q.s.classes[class] and class or OTHER), name, by)
end

local function write_counts(q)
  if not q.counted or not next(q.counted) then return end
  for key, counted in pairs(q.counted) do
    for name, by in pairs(counted) do redis.pcall('HINCRBY', key, name, digits(by)) end
    if q.lifetimes[key] then redis.call('PEXPIRE', key, digits(q.lifetimes[key])) end
  end
  q.counted = {}
end

-- Tokens for workers that wait, one for each job that became ready and for each move of the gate; 16 are enough.
local WAKE_TOKENS = 16

local function write_wake(q)
  if q.woken == 0 then return end
  local key = q.p .. 'queue:wake'
  local waiting = redis.pcall('LLEN', key)
  if type(waiting) ~= 'number' then
    redis.call('DEL', key)
    waiting = 0
  end
  if waiting < WAKE_TOKENS then
    local tokens = {}
    for i = 1, math.min(q.woken, WAKE_TOKENS - waiting) do tokens[i] = '1' end
    redis.call('LPUSH', key, unpack(tokens))
  end
  q.woken = 0
end

-- The civil date of a day number since 1970-01-01 (H. Hinnant, "chrono-compatible low-level date algorithms").
local function utc_date(ms)
  local z = math.floor(ms / 86400000) + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local day = doy - math.floor((153 * mp + 2) / 5) + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return string.format('%04d-%02d-%02d', year, month, day)
end

-- The first of each id in a list goes (words: 1 id 1 id …): those at its head at once, whoever stands elsewhere is looked
-- for. It is a view for people: what somebody put there of another type must keep no other index from being written.
local function remove_listed(key, words)
  local wanted, heads, at_head = {}, put('LRANGE', key, 0, #words / 2 - 1), 0
  for i = 2, #words, 2 do wanted[words[i]] = true end
  while wanted[heads[at_head + 1] or ''] do
    at_head = at_head + 1
    wanted[heads[at_head]] = nil
  end
  if at_head > 0 then redis.call('LTRIM', key, at_head, -1) end
  for i = 2, #words, 2 do
    if wanted[words[i]] then redis.call('LREM', key, 1, words[i]) end
  end
end

-- The indexes are written at the end of a hot call, a command a key, in the order of the writes to it. Whatever reads
-- one earlier calls write_indexes first. Other commands write at once.
local function write_index(key, pending)
  if pending.command == 'LREM' then return remove_listed(key, pending.words) end
  redis.call(pending.command, key, unpack(pending.words))
end

-- Each by itself: one that somebody wrote over must not keep the others from being written.
local function write_indexes(q)
  if not q.gathered or not next(q.gathered) then return end
  local gathered, why = q.gathered, nil
  q.gathered = {}
  for key, pending in pairs(gathered) do
    local _, said = pcall(write_index, key, pending) -- nothing where it was written
    why = why or said
  end
  if why then return error(why) end
end

local function index(q, command, key, first, second)
  if type(first) == 'number' then first = digits(first) end
  if not q.gathered then
    if second then redis.call(command, key, first, second) else redis.call(command, key, first) end
    return
  end
  local pending = q.gathered[key]
  if not pending then
    pending = { command = command, words = {} }
    q.gathered[key] = pending
  elseif pending.command ~= command then
    write_index(key, pending)
    pending.command, pending.words = command, {}
  end
  local words = pending.words
  words[#words + 1] = first
  words[#words + 1] = second -- nil adds nothing
end

local function close_call(q)
  write_indexes(q)
  write_counts(q)
  write_wake(q)
end

local function answer_json(command, args)
  local q = open_call(args)
  q.a = cjson.decode(args[3] or '{}')
  local body = command(q)
  close_call(q)
  return cjson.encode(body)
end

local function answer_list(command, args)
  local q = open_call(args)
  q.gathered = {}
  local whole, list = pcall(command, q)
  if not whole then
    -- What it has moved until then is where its record says: nobody would look for it elsewhere.
    pcall(write_indexes, q)
    return error(list)
  end
  close_call(q)
  return list
end

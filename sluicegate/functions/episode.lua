-- notify {source, group, alerts = [{fingerprint, status, starts_at, ends_at, name, runbook, labels}]}: keep one
-- notification and open, touch or close the episode of each alert. A firing is a hint, a resolved only closes (contract §7).
-- -> {event, episodes = [{id, number, state, new}]}

-- A contract that was applied before this was a setting does not say it.
local function retention_ms(q)
  return q.s.timings.episode_retention_ms or 7 * 86400000
end

-- startsAt is no stable id: it moves earlier in one episode, and a late repeat carries that of an ended one.
local function begins_anew(q, known, alert)
  if not known.state then return true end
  if known.state == 'closed' then return alert.starts_at > (tonumber(known.ends_at) or 0) end
  return alert.starts_at > (tonumber(known.starts_at) or 0) + q.s.timings.reject_return_ms
end

local function fire(q, id, known, alert)
  local key = q.p .. 'episode:' .. id
  if not begins_anew(q, known, alert) then
    if known.state ~= 'open' then return { id = id, number = tonumber(known.number) or 0, state = 'closed', new = false } end
    local deliveries = (whole_number(known.deliveries) or 0) + 1
    put('HSET', key, 'touched_at', digits(q.now), 'deliveries', digits(deliveries))
    put('ZADD', q.p .. 'episodes:open', q.now, id)
    return { id = id, number = tonumber(known.number) or 0, state = 'open', new = false }
  end
  local number = (tonumber(known.number) or 0) + 1
  put('HSET', key, 'state', 'open', 'number', number, 'starts_at', digits(alert.starts_at), 'ends_at', '0', 'name',
    alert.name, 'runbook', alert.runbook, 'labels', alert.labels, 'opened_at', digits(q.now), 'touched_at', digits(q.now),
    'deliveries', 1, 'outcome', '', 'run', '')
  put('ZADD', q.p .. 'episodes:open', q.now, id)
  return { id = id, number = number, state = 'open', new = true }
end

-- An end that comes before its firing is kept as well: the firing that follows it late is an ended one's. The late end
-- of an earlier episode ends no later one.
local function resolve(q, id, known, alert)
  local number = tonumber(known.number) or 0
  if known.state == 'open' and alert.ends_at < (tonumber(known.starts_at) or 0) then
    return { id = id, number = number, state = 'open', new = false }
  end
  local ends_at = math.max(alert.ends_at, tonumber(known.ends_at) or 0)
  put('HSET', q.p .. 'episode:' .. id, 'state', 'closed', 'ends_at', digits(ends_at))
  put('ZREM', q.p .. 'episodes:open', id)
  return { id = id, number = number, state = 'closed', new = false }
end

-- What an episode was known by, without what only its readers want.
local KNOWN = { 'state', 'number', 'starts_at', 'ends_at', 'deliveries', 'touched_at' }

local function known_of(key)
  local values, known = put('HMGET', key, unpack(KNOWN)), {}
  for i, name in ipairs(KNOWN) do known[name] = values[i] or nil end
  return known
end

function commands.notify(q)
  if not q.s then return { event = '', episodes = {} } end
  local episodes, heard = {}, {}
  for i, alert in ipairs(q.a.alerts) do
    local id = q.a.source .. ':' .. alert.fingerprint
    local known = known_of(q.p .. 'episode:' .. id)
    heard[i] = alert.fingerprint .. ' ' .. alert.status .. ' ' .. digits(alert.starts_at) .. ' ' .. digits(alert.ends_at)
    -- A time to come is a wrong clock: taken as it is, it would keep an episode open, or every later one closed.
    alert.starts_at, alert.ends_at = math.min(alert.starts_at, q.now), math.min(alert.ends_at, q.now)
    local handle = alert.status == 'firing' and fire or resolve
    episodes[i] = handle(q, id, known, alert)
    -- A life is renewed when a hundredth of it is over: repeats come every few minutes, and keep a week.
    if q.now - (whole_number(known.touched_at) or 0) > retention_ms(q) / 100 then
      redis.call('PEXPIRE', q.p .. 'episode:' .. id, digits(retention_ms(q)))
    end
  end
  -- An episode of which nothing was heard any more is forgotten with its record.
  put('ZREMRANGEBYSCORE', q.p .. 'episodes:open', '-inf', digits(q.now - retention_ms(q)))
  local event = put('XADD', q.p .. 'inbox', 'MAXLEN', '~', '10000', '*', 'at', digits(q.now), 'source', q.a.source,
    'group', q.a.group, 'alerts', table.concat(heard, '\n'))
  return { event = event, episodes = episodes }
end

-- episodes {}: the open ones, heard of last first, at most 200. Read-only. -> {episodes = [{id, name, runbook, outcome, run, …}]}
function commands.episodes(q)
  local open = {}
  for _, id in ipairs(rows_of('ZREVRANGE', q.p .. 'episodes:open', 0, 199)) do
    local episode = hash_of(q.p .. 'episode:' .. id)
    episode.id = id
    if episode.state == 'open' then open[#open + 1] = episode end
  end
  return { episodes = open }
end
readonly.episodes = true

-- episodes_looked {looks = [{id, outcome, run}]}: keep what looks at open episodes came to, where that is news.
-- -> {changed = [id]}
function commands.episodes_looked(q)
  local changed = {}
  for _, look in ipairs(q.a.looks) do
    local key = q.p .. 'episode:' .. look.id
    local known = put('HMGET', key, 'state', 'outcome', 'run')
    if known[1] == 'open' and (known[2] ~= look.outcome or known[3] ~= look.run) then
      redis.call('HSET', key, 'outcome', look.outcome, 'run', look.run)
      changed[#changed + 1] = look.id
    end
  end
  return { changed = changed }
end

-- reconcile_log {limit, kind}: reconcile records, duplicates and late writes, newest first; all kinds where kind is ''.
-- Read-only. -> {entries = [{…}]}
function commands.reconcile_log(q)
  local rows = {}
  local found = entries_of({ 'kind' }, { 'at' }, 'XREVRANGE', q.p .. 'reconcile:log', '+', '-', 'COUNT', q.a.limit or 100)
  for _, row in ipairs(found) do
    if (q.a.kind or '') == '' or row.kind == q.a.kind then rows[#rows + 1] = row end
  end
  return { entries = rows }
end
readonly.reconcile_log = true

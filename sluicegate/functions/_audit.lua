-- The audit log (contract §7): what moved a gate, opened, brought on or ended a run, and who said so, written with its
-- effect. Each entry has a number and the SHA-1 of the hash before it and of its own fields, so that one that was
-- changed, taken out, put in or moved is found. SHA-1 is what every server computes natively; sluicegate/audit.py
-- computes the same.

-- A library has at most 200 local names, so those of this file end with it.
do

-- About so many are kept, and trimmed in batches: the hash of the last one that went is kept as the chain's base.
local MOST, BATCH = 20000, 200

-- Every name and value with its length before it, so that no two lists of fields read the same.
local function hash_of_entry(before, words)
  local parts = { before }
  for i, word in ipairs(words) do parts[i + 1] = #word .. ':' .. word end
  return redis.sha1hex(table.concat(parts))
end

local function head_of(q)
  local found = put('HMGET', q.p .. 'audit:head', 'n', 'hash', 'base_n')
  return { n = whole_number(found[1] or '0') or 0, hash = found[2] or '', base_n = whole_number(found[3] or '0') or 0 }
end

local function field(entry, name)
  for i = 1, #entry[2], 2 do
    if entry[2][i] == name then return entry[2][i + 1] end
  end
  return nil
end

-- Let the oldest go, a batch at most: those above the number that is kept, and those that are too old.
local function trim(q, head)
  local key = q.p .. 'audit'
  local oldest = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)[1]
  local horizon = q.now - tonumber(R.retention(q))
  local too_old = oldest and (tonumber(field(oldest, 'at') or '') or 0) < horizon
  if head.n - head.base_n <= MOST + BATCH and not too_old then return end
  local rows, last = redis.call('XRANGE', key, '-', '+', 'COUNT', BATCH + 1), nil
  for i = 1, #rows - 1 do
    local old = (tonumber(field(rows[i], 'at') or '') or 0) < horizon
    if not old and head.n - (whole_number(field(rows[i], 'n')) or 0) < MOST then break end
    last = i
  end
  if not last then return end
  redis.call('XTRIM', key, 'MINID', '=', rows[last + 1][1])
  redis.call('HSET', q.p .. 'audit:head', 'base_n', field(rows[last], 'n') or '0', 'base_hash',
    field(rows[last], 'hash') or '')
end

-- Write one entry: a kind, then names and values.
function A.write(q, kind, ...)
  local head = head_of(q)
  local words = { 'n', digits(head.n + 1), 'at', digits(q.now), 'kind', kind, ... }
  for i, word in ipairs(words) do words[i] = tostring(word) end
  local hash = hash_of_entry(head.hash, words)
  words[#words + 1] = 'hash'
  words[#words + 1] = hash
  put('XADD', q.p .. 'audit', '*', unpack(words))
  redis.call('HSET', q.p .. 'audit:head', 'n', words[2], 'hash', hash)
  trim(q, { n = head.n + 1, base_n = head.base_n })
end

-- audit {after, limit}: entries after one id, '-' for all, oldest first, and the chain's two ends. Read-only.
-- -> {entries = [[id, [name, value, …]]], head = {n, hash, base_n, base_hash}}
function commands.audit(q)
  local from = q.a.after == '-' and '-' or '(' .. q.a.after
  local rows, head = rows_of('XRANGE', q.p .. 'audit', from, '+', 'COUNT', q.a.limit), hash_of(q.p .. 'audit:head')
  return { entries = rows, head = { n = head.n or '0', hash = head.hash or '', base_n = head.base_n or '0',
    base_hash = head.base_hash or '' } }
end
readonly.audit = true

end

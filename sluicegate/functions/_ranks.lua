-- Ranks over several sorted sets together, without merging them: the same cost at any depth.

-- A library has at most 200 local names, so what only this file needs ends with it.
local card, sets_of, score_text, nth_score

do

-- How many a set holds; `cards` remembers it within one reading, where nothing changes.
function card(key, cards)
  local n = cards and cards[key] or redis.call('ZCARD', key)
  if cards then cards[key] = n end
  return n
end

function sets_of(keys, cards)
  local sets, total = {}, 0
  for _, key in ipairs(keys) do
    local n = card(key, cards)
    if n > 0 then
      sets[#sets + 1] = { key = key, from = 0, n = n }
      total = total + n
    end
  end
  return sets, total
end

-- The score at a rank (from 0), as Redis writes it: a text that it takes back without loss.
function score_text(key, rank)
  return redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')[2]
end

-- So few scores are fetched and sorted.
local FEW = 24

local function nth_of_few(sets, rank)
  local scores = {}
  for _, set in ipairs(sets) do
    local flat = redis.call('ZRANGE', set.key, set.from, set.from + set.n - 1, 'WITHSCORES')
    for i = 2, #flat, 2 do scores[#scores + 1] = tonumber(flat[i]) end
  end
  table.sort(scores)
  return scores[rank]
end

-- How many scores of each part are not above one, and of all.
local function not_above(sets, score)
  local counts, sum = {}, 0
  for i, set in ipairs(sets) do
    local n = redis.call('ZCOUNT', set.key, '-inf', score) - set.from
    counts[i] = math.max(0, math.min(set.n, n))
    sum = sum + counts[i]
  end
  return counts, sum
end

-- The score of each part at the same share of it, ascending. The one that is looked for lies between the first and the
-- last: fewer than `rank` are below the first, and at least `rank` are not above the last.
local function own_scores(sets, total, rank)
  local own = {}
  for i, set in ipairs(sets) do
    own[i] = score_text(set.key, set.from + math.floor((rank * set.n + total - 1) / total) - 1)
  end
  table.sort(own, function(a, b) return tonumber(a) < tonumber(b) end)
  return own
end

-- The rank-th smallest score (from 1) of several sets together, without merging them: what lies outside two
-- neighbouring ones of their own scores is left out, again and again.
function nth_score(sets, total, rank)
  while #sets > 1 and total > FEW do
    local own = own_scores(sets, total, rank)
    local first, last, low, high = 1, #own, nil, nil
    while first < last do
      local middle = math.floor((first + last) / 2)
      local counts, sum = not_above(sets, own[middle])
      if sum >= rank then last, high = middle, counts else first, low = middle + 1, counts end
    end
    if first == 1 then return tonumber(own[1]) end
    high = high or not_above(sets, own[first])
    local inside = {}
    total = 0
    for i, set in ipairs(sets) do
      rank = rank - low[i]
      local n = high[i] - low[i]
      if n > 0 then inside[#inside + 1] = { key = set.key, from = set.from + low[i], n = n } end
      total = total + n
    end
    sets = inside
  end
  if #sets == 1 then return tonumber(score_text(sets[1].key, sets[1].from + rank - 1)) end
  return nth_of_few(sets, rank)
end

end

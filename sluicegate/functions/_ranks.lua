-- Ranks over several sorted sets together, without merging them: the same cost at any depth.

-- A library has at most 200 local names, so what only this file needs ends with it.
local sets_of, score_text, is_whole, exact, load_few, score_at, first_score, last_score, counted_up_to, nth_score

do

-- The sets among these keys that hold anything, and how many they hold together.
function sets_of(keys)
  local sets, total = {}, 0
  for _, key in ipairs(keys) do
    local n = redis.call('ZCARD', key)
    if n > 0 then
      sets[#sets + 1] = { key = key, n = n }
      total = total + n
    end
  end
  return sets, total
end

-- The score at a rank (from 0), as Redis writes it: a text that it takes back without loss.
function score_text(key, rank)
  return redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')[2]
end

-- Whether a score is a whole number that can be told digit by digit, as all are that this library writes.
function is_whole(score)
  return score % 1 == 0 and score < 2^53 and score > -2^53
end

-- A score as text, without loss; for a whole one it takes a quarter of the time.
function exact(score)
  if is_whole(score) then return digits(score) end
  return string.format('%.17g', score)
end

-- So few scores cost no more to fetch at once than one by one.
local FEW = 12

-- Fetch all scores of a small set: whatever is asked of it then costs no call.
function load_few(set)
  if set.scores or set.n > FEW then return set end
  local flat = redis.call('ZRANGE', set.key, 0, -1, 'WITHSCORES')
  local scores = {}
  for i = 2, #flat, 2 do scores[i / 2] = tonumber(flat[i]) end
  set.scores = scores
  return set
end

-- The score at a rank of one set (from 1).
function score_at(set, rank)
  if set.scores then return set.scores[rank] end
  return tonumber(score_text(set.key, rank - 1))
end

-- The least score of a set, and the greatest: a set's ends are at hand, and every other rank is a way down through it.
function first_score(set)
  local first = set.first or set.scores and set.scores[1] or tonumber(score_text(set.key, '0'))
  set.first = first
  return first
end

function last_score(set)
  local last = set.last or set.scores and set.scores[set.n]
    or tonumber(redis.call('ZRANGE', set.key, '0', '0', 'REV', 'WITHSCORES')[2])
  set.last = last
  return last
end

-- How many scores of a set are below one, or, `with` it, not above it.
function counted_up_to(set, score, with)
  local scores = set.scores
  if scores then
    local n = set.n
    while n > 0 and (scores[n] > score or (not with and scores[n] == score)) do n = n - 1 end
    return n
  end
  if set.first and set.first > score then return 0 end
  if set.last and set.last < score then return set.n end
  local text = exact(score)
  return redis.call('ZCOUNT', set.key, '-inf', with and text or '(' .. text)
end

-- The rank of one score of the set number j: of all that come before it, and itself. Equal scores stand in the order of
-- their sets. Each set's `at` is how many of its own that counts.
local function rank_of(sets, j, position, score)
  local rank = position
  for i, set in ipairs(sets) do
    if i == j then
      set.at = position
    elseif set.low == set.high then
      set.at = set.low
      rank = rank + set.low
    else
      set.at = counted_up_to(set, score, i < j)
      rank = rank + set.at
    end
  end
  return rank
end

-- Leave out what lies on the wrong side of the score just looked at: it is `missing` ranks too low (negative: too high).
-- What each set lost says how dense it is there.
local function narrow(sets, j, missing)
  for i, set in ipairs(sets) do
    if missing > 0 then
      set.lost, set.low = set.at - set.low, set.at
    else
      set.lost, set.high = set.high - set.at, i == j and set.at - 1 or set.at
    end
  end
end

-- So near to the rank that is looked for the scores between are fetched.
local NEAR = 4

-- The score so many ranks after, or before, the one just looked at: all sets' nearest ones hold it.
local function near(sets, missing)
  local scores = {}
  for _, set in ipairs(sets) do
    local first, last = set.low + 1, math.min(set.high, set.low + missing)
    if missing < 0 then first, last = math.max(set.low + 1, set.high + missing + 1), set.high end
    if first <= last and set.scores then
      for i = first, last do scores[#scores + 1] = set.scores[i] end
    elseif first <= last then
      local flat = redis.call('ZRANGE', set.key, first - 1, last - 1, 'WITHSCORES')
      for i = 2, #flat, 2 do scores[#scores + 1] = tonumber(flat[i]) end
    end
  end
  table.sort(scores)
  return scores[missing > 0 and missing or #scores + missing + 1]
end

-- After so many guesses by density the largest remainder is halved each time, so that there is an end.
local GUESSES = 6

-- Where to look next: in the set that is densest, as far away as its share of what is missing. How dense sets are is seen
-- between two scores looked at, and before there is one on either side of the rank, from what they lost.
local function next_look(sets, missing, guesses, enclosed)
  local j, most, all = nil, 0, 0
  local by = (enclosed or guesses > GUESSES) and 'left' or 'lost'
  for _, set in ipairs(sets) do set.left = set.high - set.low end
  for i, set in ipairs(sets) do
    if set.left > 0 then
      all = all + set[by]
      if not j or set[by] > most then j, most = i, set[by] end
    end
  end
  local set = sets[j]
  if guesses > GUESSES or most == 0 then return j, set.low + math.ceil(set.left / 2) end
  local step = math.ceil(math.abs(missing) * most / all)
  if missing > 0 then return j, math.min(set.high, set.low + step) end
  return j, math.max(set.low + 1, set.high - step + 1)
end

-- Where to look first: at its share of the rank in the largest set of those that begin before the answer can be. Where all
-- those together hold too little, in the next one to begin, as though all of them lay before it.
local function first_look(sets, rank, least)
  local j, begun, next_one = nil, 0, nil
  for i, set in ipairs(sets) do
    local first = first_score(set)
    if not least or first <= least then
      begun = begun + set.n
      if not j or set.n > sets[j].n then j = i end
    elseif not next_one or first < sets[next_one].first then
      next_one = i
    end
  end
  local position
  if next_one and begun < rank then
    j, position = next_one, rank - begun
  else
    position = math.floor(rank * sets[j].n / begun + 0.5)
  end
  return j, math.max(1, math.min(sets[j].n, position))
end

-- The rank-th smallest score (from 1) of several sets together, without merging them: a guess at a score of one of them,
-- its exact rank by counting in the others, and the next guess from what was counted, until what is left is fetched.
-- `least` and `most`, where given, are known to enclose it.
function nth_score(sets, rank, least, most)
  if least and least == most then return least end
  if #sets == 1 then return score_at(sets[1], rank) end
  for _, set in ipairs(sets) do
    set.low, set.high, set.lost = 0, load_few(set).n, set.n
  end
  local j, position = first_look(sets, rank, least)
  local guesses, too_low, too_high = 0, false, false
  while true do
    local score = score_at(sets[j], position)
    local missing = rank - rank_of(sets, j, position, score)
    if missing == 0 then return score end
    if missing > 0 then least, too_low = score, true else most, too_high = score, true end
    if least == most then return score end
    narrow(sets, j, missing)
    if math.abs(missing) <= NEAR then return near(sets, missing) end
    guesses = guesses + 1
    j, position = next_look(sets, missing, guesses, too_low and too_high)
  end
end

end

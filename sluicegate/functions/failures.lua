-- failures {date, offset, limit}: the lines of failed:{date} from `offset` on, oldest first; at most 1,000 a call. Read-only.
-- -> {lines = [JSON text]}
function commands.failures(q)
  local first = q.a.offset or 0
  local last = first + math.min(q.a.limit or 1000, 1000) - 1
  return { lines = redis.call('LRANGE', q.p .. 'failed:' .. q.a.date, first, last) }
end
readonly.failures = true

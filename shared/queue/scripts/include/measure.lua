-- What a run measured is added to its table's sums (name, increment pairs in ARGV[first ..]). When enough runs are in them
-- all are halved, so that the newest runs always weigh at least half: a table that changes is learned anew.
-- include: base
local RUNS_WEIGHED = 64

local function measure(tbl, first, pairs_given)
  local key = measures_key(tbl)
  for i = first, first + 2 * pairs_given - 1, 2 do call('HINCRBY', key, ARGV[i], ARGV[i + 1]) end
  if number(call('HGET', key, 'runs') or 0) < RUNS_WEIGHED then return end
  local sums = call('HGETALL', key)
  for i = 1, #sums, 2 do call('HSET', key, sums[i], int(math.floor(tonumber(sums[i + 1]) / 2))) end
end

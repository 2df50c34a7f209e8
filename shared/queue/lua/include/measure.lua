-- Adds the measures of a run to its table's sums (name, increment pairs in args[first ..]). When they cover enough runs,
-- all are halved, so that the newest runs always weigh at least half: the sums follow a table that changes.
-- include: config
local RUNS_WEIGHED = 64

local function measure(tbl, args, first, pairs_given)
  local key, runs = measures_key(tbl), 0
  for i = first, first + 2 * pairs_given - 1, 2 do
    local sum = call('HINCRBY', key, args[i], args[i + 1])
    if args[i] == 'runs' then runs = sum end
  end
  if runs < RUNS_WEIGHED then return end
  local sums = call('HGETALL', key)
  for i = 1, #sums, 2 do call('HSET', key, sums[i], math.floor(tonumber(sums[i + 1]) / 2)) end
end

-- Adds counters (name, increment pairs in args[first ..]) to a table's counters, unless it is nil, and to the queue's.
-- include: config
local function count(tbl, args, first, pairs_given)
  for i = first, first + 2 * pairs_given - 1, 2 do
    if tbl then call('HINCRBY', counters_key(tbl), args[i], args[i + 1]) end
    call('HINCRBY', counters_key(nil), args[i], args[i + 1])
  end
end

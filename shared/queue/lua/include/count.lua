-- Adds counters (name, increment pairs in args[first ..]) to a table's counters, unless it is nil, and to the queue's.
-- include: config
local function count(tbl, args, first, pairs_given)
  local of_table, of_all = tbl and counters_key(tbl), counters_key(nil)
  for i = first, first + 2 * pairs_given - 1, 2 do
    if of_table then call('HINCRBY', of_table, args[i], args[i + 1]) end
    call('HINCRBY', of_all, args[i], args[i + 1])
  end
end

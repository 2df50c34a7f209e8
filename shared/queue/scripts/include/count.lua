-- Adds counters (name, increment pairs in ARGV[first ..]) to a table's counters and to the queue's.
-- include: base
local function count(tbl, first, pairs_given)
  for i = first, first + 2 * pairs_given - 1, 2 do
    call('HINCRBY', counters_key(tbl), ARGV[i], ARGV[i + 1])
    call('HINCRBY', counters_key(nil), ARGV[i], ARGV[i + 1])
  end
end

-- Cost of service. A band or tenant is served at the least start tag S, which becomes the node's virtual time, and is charged
-- to F = S + cost/weight; an estimate at claim, the difference when the run has ended. A table's turn moves by as much,
-- a second per MiB at weight 1, but to the rank of its next job at least.
-- include: tree
local units, charge, charge_table, reconcile_charge
do
  local MIB = 1048576
  local PRUNED_PER_CHARGE = 4

  -- A thousandth of a MiB at weight 1; a job costs at least one MiB, because claiming and committing are never free.
  function units(cost, weight)
    return math.max(1, math.floor(math.max(1, cost / MIB) * 1000 / weight + 0.5))
  end

  -- A tag behind the virtual time has no meaning any more. Some are deleted whenever one is added, so that their number is
  -- bounded.
  local function prune(node, virtual)
    local passed = call('ZRANGE', idle_key(node), '-inf', virtual, 'BYSCORE', 'LIMIT', 0, PRUNED_PER_CHARGE)
    if #passed > 0 then call('ZREM', idle_key(node), unpack(passed)) end
  end

  -- Charges the child that is served at tag `start`; `now` is its condition after that. Returns the node's.
  function charge(node, child, start, amount, now)
    local left = 'ready'
    if now == 'ready' then
      call('ZADD', ready_key(node), start + amount, child)
    else
      call('ZREM', ready_key(node), child)
      keep(node, child, now, start + amount)
      left = after_leaving(node)
      if left == 'empty' then return left end
      if now == 'empty' then
        prune(node, start)
        call('ZADD', idle_key(node), start + amount, child)
      end
    end
    -- A child that was aside may be served behind the virtual time, which never goes back: others would return further behind.
    moved_virtual_times[node] = math.max(virtual_of(node), start)
    return left
  end

  -- Charges the table that is served at this turn. `now`, `rank`: its condition after that, and the rank of its next job if it
  -- is ready. Returns the leaf's condition.
  function charge_table(leaf, tbl, turn, amount, now, rank)
    if now == 'ready' then
      call('ZADD', ready_key(leaf), math.max(rank, turn + amount), tbl)
      return 'ready'
    end
    call('ZREM', ready_key(leaf), tbl)
    keep(leaf, tbl, now, turn + amount)
    return after_leaving(leaf)
  end

  -- Corrects the turn of a table that waits; one that does not wait owes nothing.
  local function correct_turn(band, tenant, tbl, difference)
    local leaf = leaf_node(band, tenant)
    for _, waiting in ipairs({ready_key(leaf), held_key(leaf), aside_children_key(leaf)}) do
      local turn = tonumber(call('ZSCORE', waiting, tbl))
      if turn then
        local _, rank = first_of(flow_key(band, tenant, tbl))
        call('ZADD', waiting, math.max(rank or 0, turn + difference), tbl)
        return
      end
    end
  end

  -- Corrects a charge made by estimate once the cost is known. No tag falls behind the virtual time by that; one that is
  -- behind it, because the child was aside, stays within MAX_LAG.
  local function correct(node, child, virtual, difference)
    if difference == 0 then return end
    for _, waiting in ipairs({ready_key(node), held_key(node), aside_children_key(node)}) do
      local start = tonumber(call('ZSCORE', waiting, child))
      if start then
        local least = start < virtual and math.min(start, math.max(0, virtual - MAX_LAG)) or virtual
        call('ZADD', waiting, math.max(least, start + difference), child)
        return
      end
    end
    if condition(node) == 'empty' then return end
    local finish = math.max(virtual, number(call('ZSCORE', idle_key(node), child))) + difference
    if finish > virtual then
      call('ZADD', idle_key(node), finish, child)
    else
      call('ZREM', idle_key(node), child)
    end
  end

  function reconcile_charge(band, tenant, tbl, estimated, actual)
    if estimated == actual then return end
    local weights = settings_of_path(band, tenant, tbl)
    local of_band, of_tenant, of_table = tonumber(weights[1] or 1), tonumber(weights[2] or 1), tonumber(weights[3] or 1)
    local times = call('HMGET', VIRTUAL_TIMES, band, ROOT)
    correct_turn(band, tenant, tbl, units(actual, of_table) - units(estimated, of_table))
    correct(band, tenant, number(times[1]), units(actual, of_tenant) - units(estimated, of_tenant))
    if is_weighted(band) then
      correct(ROOT, band, number(times[2]), units(actual, of_band) - units(estimated, of_band))
    end
  end
end

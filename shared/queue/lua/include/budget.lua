-- Budgets: what the jobs of a table, of a tenant or of all may use in a day or a month of UTC. A job starts only if the most
-- that it is predicted to use fits into all of them; that is reserved, and replaced by what its worker reports. A run that
-- reports nothing, because its actor died, keeps its reservation. All belongs to the period in which the run began.
-- BUDGETS: scope to `limit/period/weights;..|as configured`, and `prices` to `currency/weights`. A budget limits the sum of the
-- five figures of a usage times their weights, or times the prices if it names a currency instead. `amplification|TABLE` is the
-- limit of what is rewritten per byte added; `exempts|TABLE` the number of small files of a partition beyond which its jobs
-- exceed what limits the table alone.
-- SPENT: scope to day and month, numbered from 1970 and from year 0, and five figures for each of them.
-- include: config
-- include: amplification
local budget_opens, reserve, reconcile_budgets, learn_usage, read_usage
do
  local FIGURES = {usage_core_ms = 1, usage_bytes_read = 2, usage_bytes_written = 3, usage_reads = 4, usage_writes = 5}
  local PERIODS = {day = {at = 1, first = 3}, month = {at = 2, first = 8}}
  local DAY_MS, DAYS_PER_MONTH = 86400000, 30.436875
  -- The fixed work of a job weighs as much as so many bytes.
  local FIXED_BYTES, BYTES_PER_UNIT = 8388608, 1048576
  -- What a MiB of a kind that has not run on the table uses at most: several times what most need.
  local UNKNOWN = {500, 2097152, 2097152, 200, 16}
  -- A run uses at most so many times what the greatest before it used per byte; more while few are known.
  local MARGIN, MARGIN_OF_FEW, FEW_RUNS = 1.25, 2, 10
  -- The greatest is forgotten slowly; sums are halved, so that the newest runs weigh most.
  local KEPT_OF_GREATEST, RUNS_WEIGHED = 0.99, 64

  local SCOPES = {
    {letter = 't', of = function(job) return 'table|' .. job.table end},
    {letter = 'n', of = function(job) return 'tenant|' .. job.tenant end},
    {letter = 'q', of = function() return 'queue|' end},
  }
  local AMPLIFICATION = {letter = 'a', of = function(job) return 'amplification|' .. job.table end}

  -- What this call knows to be spent, by scope; and whether there is any budget.
  local spent, has_any
  on_call_start[#on_call_start + 1] = function() spent, has_any = {}, nil end

  local function numbers(text)
    local found = {}
    for one in text:gmatch('[^,]+') do found[#found + 1] = tonumber(one) end
    return found
  end

  local function joined(list)
    local texts = {}
    for i = 1, #list do texts[i] = string.format('%.17g', list[i]) end
    return table.concat(texts, ',')
  end

  -- Days from 1970 to the first day of a month; years begin with March, so that leap days are last (Hinnant 2013).
  local function first_day(month)
    local from_march = month - 2
    local year, place = math.floor(from_march / 12), from_march % 12
    local leap_days = math.floor(year / 4) - math.floor(year / 100) + math.floor(year / 400)
    return 365 * year + leap_days + math.floor((153 * place + 2) / 5) - 719468
  end

  local function month_of(day)
    local month = 1970 * 12 + math.floor(day / DAYS_PER_MONTH) - 1
    for _ = 1, 2 do
      if first_day(month + 1) <= day then month = month + 1 end
    end
    return month
  end

  local function next_period_ms(period, number)
    return (period == 'day' and number + 1 or first_day(number + 1)) * DAY_MS
  end

  -- A clock that is set back begins no earlier period again.
  local function begin_period(one, period, number)
    if number <= one[period.at] then return end
    one[period.at] = number
    for i = period.first, period.first + 4 do one[i] = 0 end
  end

  local function spent_of(scope)
    local one = spent[scope]
    if not one then
      one = numbers(call('HGET', SPENT, scope) or '0,0')
      local day = math.floor(now_ms / DAY_MS)
      begin_period(one, PERIODS.day, day)
      begin_period(one, PERIODS.month, month_of(day))
      spent[scope] = one
    end
    return one
  end

  local function add(one, period, figures, sign)
    for i = 1, 5 do
      local at = period.first + i - 1
      one[at] = math.max(0, one[at] + sign * figures[i])
    end
  end

  local function weighted(figures, first, weights)
    local sum = 0
    for i = 1, 5 do sum = sum + figures[first + i - 1] * weights[i] end
    return sum
  end

  local function base_of(job) return (tonumber(job.cost) + FIXED_BYTES) / BYTES_PER_UNIT end
  local function rate_of(job) return job.kind .. '|' .. (job.extent or '0') end

  -- The most that a job is predicted to use.
  local function bound_of(job)
    local known, base, bound = call('HGET', rates_key(job.table), rate_of(job)), base_of(job), {}
    local rates = known and numbers(known)
    for i = 1, 5 do
      local most = rates and rates[7 + i] * (rates[1] < FEW_RUNS and MARGIN_OF_FEW or MARGIN) or UNKNOWN[i]
      bound[i] = math.ceil(most * base)
    end
    return bound
  end

  -- Calls `act(limit, period, weights)` for each part of a budget; without weights: its currency has no prices.
  local function each_limit(budget, prices, act)
    for limit, period, unit in budget:match('^[^|]*'):gmatch('([^/;]+)/(%a+)/([^;]+)') do
      local weights = unit:find(',', 1, true) and unit or (prices or ''):match('^' .. unit .. '/(.*)$')
      act(tonumber(limit), period, weights and numbers(weights))
    end
  end

  -- Whether the partition of a job has more small files than its table's limits hold for. The state of a partition begins with
  -- six numbers, and the small files of six levels.
  local function is_exempt(job, most)
    if not most then return false end
    local state, small = call('HGET', partitions_key(job.table), job.partition or ''), 0
    local counts = state and {state:match('^' .. ('%d+,'):rep(6) .. ('(%d+),'):rep(6))} or {}
    for i = 1, #counts do small = small + tonumber(counts[i]) end
    return small > tonumber(most)
  end

  -- Returns when the job may start, and the scope whose budget holds it, nil if it may now; `!` before the scope: the whole
  -- budget is too small for it, `?`: its currency has no prices. The budgets that count its use become its `scopes`.
  function budget_opens(job)
    job.scopes = {}
    if has_any == nil then has_any = call('EXISTS', BUDGETS) == 1 end
    if not has_any then return nil end
    local opens, holder
    local found = call('HMGET', BUDGETS, SCOPES[1].of(job), SCOPES[2].of(job), SCOPES[3].of(job), AMPLIFICATION.of(job),
      'exempts|' .. job.table, 'prices')
    local function hold_until(ends, mark, scope)
      local is_own = scope.letter == 't' or scope.letter == 'a'
      if is_own and is_exempt(job, found[5]) then return end
      if not opens or ends > opens then opens, holder = ends, mark .. scope.of(job) end
    end
    for i = 1, #SCOPES do
      if found[i] then
        local one = spent_of(SCOPES[i].of(job))
        job.bound = job.bound or bound_of(job)
        job.scopes[#job.scopes + 1] = SCOPES[i]
        each_limit(found[i], found[6], function(limit, period, weights)
          local needed = weights and weighted(job.bound, 1, weights) or math.huge
          local used = weights and weighted(one, PERIODS[period].first, weights) or 0
          if job.any_time == '1' or used + needed <= limit then return end
          local mark = not weights and '?' or needed > limit and '!' or ''
          hold_until(next_period_ms(period, one[PERIODS[period].at]), mark, SCOPES[i])
        end)
      end
    end
    if found[4] then
      job.bound = job.bound or bound_of(job)
      job.scopes[#job.scopes + 1] = AMPLIFICATION
      local ends, is_more = amplification_opens(job.table, tonumber(found[4]), rewrite_of(job.kind, job.bound))
      if ends and job.any_time ~= '1' then hold_until(ends, is_more and '!' or '', AMPLIFICATION) end
    end
    return opens, holder
  end

  -- Reserves what a job that starts may use. `is_foreseen`: for this call alone.
  function reserve(job, is_foreseen)
    if #job.scopes == 0 then return end
    local letters, periods = '', {math.floor(now_ms / DAY_MS), 0}
    for _, scope in ipairs(job.scopes) do
      if scope == AMPLIFICATION then
        add_rewritten(job.table, periods[1], rewrite_of(job.kind, job.bound), is_foreseen)
      else
        local one = spent_of(scope.of(job))
        for _, period in pairs(PERIODS) do
          add(one, period, job.bound, 1)
          periods[period.at] = math.max(periods[period.at], one[period.at])
        end
        if not is_foreseen then call('HSET', SPENT, scope.of(job), joined(one)) end
      end
      letters = letters .. scope.letter
    end
    job.reserved = joined(periods) .. ',' .. joined(job.bound) .. '|' .. letters
  end

  -- The figures among the counters (name, increment pairs in args[first ..]) that a run reports; nil if there are none.
  function read_usage(args, first, pairs_given)
    local usage, is_known = {0, 0, 0, 0, 0}, false
    for i = first, first + 2 * pairs_given - 1, 2 do
      local figure = FIGURES[args[i]]
      if figure then usage[figure], is_known = tonumber(args[i + 1]), true end
    end
    return is_known and usage or nil
  end

  -- Replaces the reservation of a run by its use, in the periods in which it began; what it rewrote counts for a known table
  -- without a reservation, too, today.
  function reconcile_budgets(job, usage, is_known)
    if not usage then return end
    local was_limited = job.reserved and job.reserved:find('a', 1, true)
    if is_known and not was_limited then
      add_rewritten(job.table, math.floor(now_ms / DAY_MS), rewrite_of(job.kind, usage))
    end
    if not job.reserved then return end
    local text, letters = job.reserved:match('^([^|]+)|(%a+)$')
    local reserved = numbers(text)
    local bound = {unpack(reserved, 3)}
    if is_known and was_limited then
      add_rewritten(job.table, reserved[1], rewrite_of(job.kind, usage) - rewrite_of(job.kind, bound))
    end
    for _, scope in ipairs(SCOPES) do
      local name = scope.of(job)
      -- Without what is spent the budget was removed meanwhile.
      if letters:find(scope.letter, 1, true) and call('HEXISTS', SPENT, name) == 1 then
        local one = spent_of(name)
        for _, period in pairs(PERIODS) do
          if one[period.at] == reserved[period.at] then
            add(one, period, usage, 1)
            add(one, period, bound, -1)
          end
        end
        call('HSET', SPENT, name, joined(one))
      end
    end
  end

  -- Learns what a kind of job uses per byte: number of runs, sums of bytes and of the figures, and the greatest of each.
  -- One that wrote nothing, as there was nothing to do, says nothing of those that write, but for what it used beyond them.
  function learn_usage(job, usage)
    local key, base = rates_key(job.table), base_of(job)
    local unknown = '0,0,0,0,0,0,0,0,0,0,0,0'
    local rates = numbers(call('HGET', key, rate_of(job)) or unknown)
    local has_written, writes = rates[7] > 0, usage[5] > 0
    if writes and not has_written then rates = numbers(unknown) end
    local weight = has_written and not writes and 0 or 1
    rates[1], rates[2] = rates[1] + weight, rates[2] + weight * base
    for i = 1, 5 do
      rates[2 + i] = rates[2 + i] + weight * usage[i]
      rates[7 + i] = math.max(usage[i] / base, rates[7 + i] * KEPT_OF_GREATEST ^ weight)
    end
    if rates[1] >= RUNS_WEIGHED then
      for i = 1, 7 do rates[i] = rates[i] / 2 end
    end
    call('HSET', key, rate_of(job), joined(rates))
  end
end

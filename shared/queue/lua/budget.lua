#!lua
--[[
  budget: sets the budget of a scope, or the prices of all; `include/budget.lua` describes the texts. What is spent is counted
  while there is a budget.

  KEYS[1]  prefix of the queue
  ARGV[1]  scope, such as `tenant|sales` or `amplification|orders`, or `prices`
  ARGV[2]  budget or prices, "" for none

  Output: 1
]]
-- include: config
local scope, budget = ARGV[1], ARGV[2]
if budget ~= '' then call('HSET', BUDGETS, scope, budget) return 1 end
call('HDEL', BUDGETS, scope)
call('HDEL', SPENT, scope)
return 1

-- Every key of the queue, twin of keys.py with the same names in upper case or behind `_key`; nothing else
-- builds a key. `P` is the prefix of the group whose jobs this call moves, `S` that of the whole queue: states, histories and
-- settings of tables are of the queue, whatever group a table belongs to.
local P, S, CONFIG, VIRTUAL_TIMES, QUEUED, LEASES, DELAYED, QUARANTINED, IN_FLIGHT, ASIDE
local DUE_TABLES, RUNS, EVENTS, CHANGED_TABLES, REFUSING_TABLES, WORK_WINDOWS, BUDGETS, SPENT, BUDGET_WAITS, GROUPS, TABLES_CONFIG
local ROOT = 'root'

-- Builds the names again only if the last call served another queue or group.
local function name_keys(prefix)
  if prefix == P then return end
  P, S = prefix, prefix:match('^{[^}]*}:')
  CONFIG, VIRTUAL_TIMES, QUEUED, LEASES = P .. 'cfg', P .. 'v', P .. 'queued', P .. 'lease'
  DELAYED, QUARANTINED, IN_FLIGHT, ASIDE = P .. 'delay', P .. 'dead', P .. 'infl', P .. 'aside'
  DUE_TABLES, RUNS, EVENTS, CHANGED_TABLES = S .. 'due', S .. 'hist', S .. 'ev', S .. 'moved'
  REFUSING_TABLES, WORK_WINDOWS = S .. 'refusing', S .. 'windows'
  BUDGETS, SPENT, BUDGET_WAITS = S .. 'budgets', S .. 'spent', S .. 'budgetwaits'
  GROUPS, TABLES_CONFIG = S .. 'groups', S .. 'cfg'
end

local function job_key(id) return P .. 'j:' .. id end
local function leaf_node(band, tenant) return band .. '|' .. tenant end
local function flow_key(band, tenant, tbl) return P .. 'f:' .. leaf_node(band, tenant) .. '|' .. tbl end
local function ready_key(node) return P .. 'n:' .. node end
local function idle_key(node) return P .. 'i:' .. node end
local function held_key(node) return P .. 'h:' .. node end
local function throttled_key(name) return P .. 'p:' .. name end
local function aside_jobs_key(ability) return P .. 'x:' .. ability end
local function aside_flow_key(band, tenant, tbl) return P .. 'y:' .. leaf_node(band, tenant) .. '|' .. tbl end
local function aside_children_key(node) return P .. 's:' .. node end
local function reply_key(worker, nonce) return S .. 'w:' .. worker .. '|' .. nonce end
local function table_state_key(tbl) return S .. 'cur:' .. tbl end
local function partitions_key(tbl) return S .. 'partitions:' .. tbl end
local function refusals_key(tbl) return S .. 'refusals:' .. tbl end
local function ledger_key(tbl) return S .. 'led:' .. tbl end
local function marks_key(tbl) return S .. 'marks:' .. tbl end
local function measures_key(tbl) return S .. 'meas:' .. tbl end
local function rates_key(tbl) return S .. 'rates:' .. tbl end
local function timers_key(tbl) return S .. 'due:' .. tbl end
local function staged_partitions_key(name) return S .. 'new:' .. name end
local function staged_timers_key(name) return S .. 'newdue:' .. name end
local function counters_key(tbl) return S .. (tbl and 'count:' .. tbl or 'count') end
local function lease_key_of(prefix) return prefix .. 'lease' end
local function group_prefix(group) return group == '' and S or S .. 'g:' .. group .. ':' end

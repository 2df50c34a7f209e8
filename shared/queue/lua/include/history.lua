-- The history: an entry for each run that ended, reported by its worker or because its lease expired.
-- include: job
local RUNS_KEPT = 10000

local function write_history(id, job, run)
  call('XADD', RUNS, 'MAXLEN', '~', RUNS_KEPT, '*',
    'job', id, 'table', job.table, 'partition', job.partition, 'kind', job.kind, 'tenant', job.tenant, 'band', job.band,
    'token', job.token, 'run_result', run.run_result, 'outcome', run.outcome, 'worker', run.worker,
    'attempts', job.attempts, 'version', job.version, 'cost', run.cost, 'first_ms', job.first_ms,
    'started', job.started, 'finished', now_ms,
    'result', run.result, 'error', run.error, 'group', P:match('g:([^:]+):$') or '')
end

-- Every run that ends leaves one record, by whatever way it ended; the newest are kept.
-- include: config
local RUNS_KEPT = 10000

-- `job`: as it was while it ran.
local function record_run(id, job, verdict, outcome, cost, result, problem)
  call('XADD', HISTORY, 'MAXLEN', '~', RUNS_KEPT, '*',
    'job', id, 'table', job.table, 'cell', job.cell, 'kind', job.kind, 'tenant', job.tenant, 'band', job.band,
    'token', job.token, 'verdict', verdict, 'outcome', outcome, 'worker', job.worker, 'attempts', job.attempts,
    'version', job.version, 'cost', cost, 't0', job.t0, 'started', job.started, 'finished', int(now_ms),
    'result', result, 'error', problem)
end

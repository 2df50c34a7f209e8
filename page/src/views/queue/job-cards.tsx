// Jobs that run, wait for a retry, or are quarantined: where each is, why, and what can be done with it.
import type { JobSummary } from '../../api/schema';
import { mayOperate } from '../../api/session';
import { formatRoute } from '../../navigation/route';
import { plural } from '../../format/numbers';
import { Badge } from '../../parts/badge';
import { NextTry } from '../../parts/next-try';
import { Ago, Bytes, Count, Meter } from '../../parts/values';
import { ErrorText } from '../../parts/error-text';
import { JobActions } from './job-actions';

export function JobCards({ jobs, reload }: { jobs: readonly JobSummary[]; reload: () => void }) {
  return (
    <ul class="jobs">
      {jobs.map(job => (
        <li key={job.id} class="job">
          <div class="job-head">
            <a class="text" href={formatRoute(['tables', job.table_name])}>
              {job.table_name}
            </a>
            <span class="text">{job.partition_label}</span>
            <Badge state={job.state === 'leased' ? 'running' : job.state} />
            {job.stop_reason !== '' && <span class="note">stopping: {job.stop_reason}</span>}
          </div>
          <div class="job-line note">
            {job.kind} · {job.reason.replaceAll('_', ' ')} · <Count value={job.predicted['files_replaced']} /> files,{' '}
            <Bytes value={job.predicted['bytes']} />
            {job.actor !== '' && <> · {job.actor}</>} · enqueued <Ago at={job.enqueued_at} />
            {job.attempts > 0 && (
              <>
                {' '}
                · {plural(job.attempts, 'failed attempt')}
                <NextTry at={job.retry_at} />
              </>
            )}
            {job.state === 'delayed' && job.attempts === 0 && job.waits_for === '' && (
              <>
                {' '}
                · waits for other merges of its table, starts <Ago at={job.retry_at} />
              </>
            )}
            {job.waits_for !== '' && (
              <>
                {' '}
                · waits for {job.waits_for}, <Ago at={job.may_start_at} />
              </>
            )}
          </div>
          {job.state === 'leased' && <Progress job={job} />}
          {job.error !== '' && <ErrorText text={job.error} />}
          {mayOperate.value && <JobActions job={job} reload={reload} />}
        </li>
      ))}
    </ul>
  );
}

function Progress({ job }: { job: JobSummary }) {
  const { share, point, groups_committed } = job.progress as Record<string, unknown>;
  const done = typeof share === 'number' ? share : 0;
  return (
    <div class="progress">
      <Meter value={done} tone="busy" label={`${Math.round(100 * done)}% of the planned file groups`} />
      <span class="note">
        {typeof point === 'string' ? `last step: ${point.replaceAll('_', ' ')}` : 'first step'}
        {typeof groups_committed === 'number' ? ` · ${groups_committed} file groups committed` : ''} · started{' '}
        <Ago at={job.started_at} />
      </span>
    </div>
  );
}

// Queue: what runs, what is next and why, the shares of tenants, and what failed.
import { api, read } from '../../api/client';
import type { JobStage, QueueView as Queue } from '../../api/schema';
import { mayOperate } from '../../api/session';
import { always, anyJob, useResource } from '../../api/use-resource';
import { duration } from '../../format/times';
import { Action } from '../../parts/action';
import { Badge } from '../../parts/badge';
import { Card, Empty, Figure, Figures, Head, Loaded } from '../../parts/frame';
import { Count } from '../../parts/values';
import { Budgets } from './budgets';
import { JobCards } from './job-cards';
import { NEXT, NextJobs } from './next-jobs';
import { QueuedJobs } from './queued-jobs';
import { RecentRuns } from './recent-runs';
import { TableShares, Tenants } from './share-list';

const SHOWN = 50;

export function QueueView() {
  const queue = useResource(
    'queue',
    signal => read(api.GET('/v1/queue', { params: { query: { next_claims: NEXT, by_table: false } }, signal })),
    always,
  );
  const isPaused = queue.data?.settings['paused']?.startsWith('all') ?? false;
  return (
    <>
      <Head
        title="Queue"
        sub={isPaused ? <Badge state="paused" /> : 'What runs, what is next and why, and what failed.'}
      >
        {mayOperate.value && queue.data !== undefined && <PauseQueue isPaused={isPaused} done={queue.reload} />}
      </Head>
      <Loaded of={queue}>{found => <Depth queue={found} />}</Loaded>
      <Jobs title="Running" stage="leased" empty="No job is running." />
      <Loaded of={queue}>
        {found => (
          <>
            <Card title="Next" note="the order if nothing else arrives, and the reason for each position">
              <NextJobs queue={found} reload={queue.reload} />
            </Card>
            <Budgets budgets={found.budgets} />
            <Tenants queue={found} reload={queue.reload} />
          </>
        )}
      </Loaded>
      <TableShares />
      <Jobs title="Delayed" stage="delayed" empty="No job waits for a retry or for others of its table." />
      <Jobs title="Quarantined" stage="quarantined" empty="No job is quarantined." />
      <QueuedJobs />
      <Finished />
    </>
  );
}

function Depth({ queue }: { queue: Queue }) {
  const queued = queue.depth['queued'] ?? 0;
  return (
    <Figures>
      <Figure label="Queued" note={queued === 0 ? 'none waits' : `oldest for ${duration(queue.oldest_wait_s)}`}>
        <Count value={queued} />
      </Figure>
      <Figure label="Running" note={`${queue.slots} slots`}>
        <Count value={queue.depth['leased'] ?? 0} />
      </Figure>
      <Figure label="Delayed" note="for a retry or other jobs">
        <Count value={queue.depth['delayed'] ?? 0} />
      </Figure>
      <Figure label="Quarantined" note="failed repeatedly">
        <Count value={queue.depth['quarantined'] ?? 0} />
      </Figure>
    </Figures>
  );
}

function PauseQueue({ isPaused, done }: { isPaused: boolean; done: () => void }) {
  const body = { scope: 'queue', name: '' } as const;
  return isPaused ? (
    <Action kind="primary" done={done} run={async () => (await read(api.POST('/v1/queue/resume', { body }))).message}>
      Resume the queue
    </Action>
  ) : (
    <Action
      done={done}
      confirm="Pause the whole queue? Running jobs continue; no job is dispatched until the queue is resumed."
      run={async () => (await read(api.POST('/v1/queue/pause', { body }))).message}
    >
      Pause the queue
    </Action>
  );
}

function Jobs({ title, stage, empty }: { title: string; stage: JobStage; empty: string }) {
  const jobs = useResource(
    `jobs ${stage}`,
    signal => read(api.GET('/v1/jobs', { params: { query: { state: stage, limit: SHOWN } }, signal })),
    always,
  );
  return (
    <Card title={title}>
      <Loaded of={jobs}>
        {page => (page.jobs.length === 0 ? <Empty>{empty}</Empty> : <JobCards jobs={page.jobs} reload={jobs.reload} />)}
      </Loaded>
    </Card>
  );
}

function Finished() {
  const runs = useResource(
    'finished',
    signal => read(api.GET('/v1/jobs', { params: { query: { state: 'finished', limit: 20 } }, signal })),
    anyJob,
  );
  return (
    <Card title="Finished runs">
      <Loaded of={runs}>{page => <RecentRuns runs={page.jobs} />}</Loaded>
    </Card>
  );
}

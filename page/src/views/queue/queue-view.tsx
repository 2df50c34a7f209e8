// Queue: the groups, and of one of them what runs, what is next and why, the shares of tenants, and what failed.
import { api, read } from '../../api/client';
import { groupOfAddress, useGroups } from '../../api/groups';
import type { GroupView, JobStage, QueueView as Queue } from '../../api/schema';
import { mayOperate } from '../../api/session';
import { always, anyJob, useResource } from '../../api/use-resource';
import { plural } from '../../format/numbers';
import { duration } from '../../format/times';
import { Action } from '../../parts/action';
import { Badge } from '../../parts/badge';
import { Card, Empty, Figure, Figures, Head, Loaded } from '../../parts/frame';
import { Count } from '../../parts/values';
import { Budgets } from './budgets';
import { Groups } from './groups';
import { JobCards } from './job-cards';
import { NEXT, NextJobs } from './next-jobs';
import { QueuedJobs } from './queued-jobs';
import { Quotas } from './quotas';
import { RecentRuns } from './recent-runs';
import { TableShares, Tenants } from './share-list';

const SHOWN = 50;

export function QueueView() {
  const groups = useGroups(always);
  if (groups.data === undefined) {
    return (
      <>
        <Head title="Queue" />
        <Loaded of={groups}>{() => null}</Loaded>
      </>
    );
  }
  const chosen = groupOfAddress() || (groups.data[0]?.group ?? '');
  return <GroupQueue key={chosen} group={chosen} groups={groups.data} />;
}

function GroupQueue({ group, groups }: { group: string; groups: readonly GroupView[] }) {
  const queue = useResource(
    'queue',
    signal => read(api.GET('/v1/queue', { params: { query: { group, next_claims: NEXT, by_table: false } }, signal })),
    always,
  );
  const isOne = groups.length < 2 && groups[0]?.group === group;
  const own = groups.find(one => one.group === group);
  const isPaused = queue.data?.settings['paused']?.startsWith('all') ?? false;
  return (
    <>
      <Head
        title={isOne ? 'Queue' : `Queue: ${group}`}
        sub={isPaused ? <Badge state="paused" /> : 'What runs, what is next and why, and what failed.'}
      >
        {mayOperate.value && queue.data !== undefined && (
          <PauseQueue group={group} isOne={isOne} isPaused={isPaused} done={queue.reload} />
        )}
      </Head>
      {!isOne && <Groups groups={groups} chosen={group} />}
      <Loaded of={queue}>{found => <Depth queue={found} />}</Loaded>
      {own !== undefined && <Quotas group={own} />}
      <Jobs group={group} title="Running" stage="leased" empty="No job is running." />
      <Loaded of={queue}>
        {found => (
          <>
            <Card title="Next" note="the order if nothing else arrives, and the reason for each position">
              <NextJobs queue={found} reload={queue.reload} />
            </Card>
            <Budgets budgets={found.budgets} />
            <Tenants group={group} queue={found} reload={queue.reload} />
          </>
        )}
      </Loaded>
      <TableShares group={group} />
      <Jobs
        group={group}
        title="Delayed"
        stage="delayed"
        empty="No job waits for a retry or for others of its table."
      />
      <Jobs group={group} title="Quarantined" stage="quarantined" empty="No job is quarantined." />
      <QueuedJobs group={group} />
      <Finished group={group} />
    </>
  );
}

function Depth({ queue }: { queue: Queue }) {
  const queued = queue.depth['queued'] ?? 0;
  const running = queue.depth['leased'] ?? 0;
  return (
    <Figures>
      <Figure label="Queued" note={queued === 0 ? 'none waits' : `oldest for ${duration(queue.oldest_wait_s)}`}>
        <Count value={queued} />
      </Figure>
      <Figure label="Running" note={`${running > queue.slots ? 'share ' : ''}${plural(queue.slots, 'slot')}`}>
        <Count value={running} />
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

interface PauseProps {
  readonly group: string;
  readonly isOne: boolean;
  readonly isPaused: boolean;
  readonly done: () => void;
}

function PauseQueue({ group, isOne, isPaused, done }: PauseProps) {
  const request = { body: { scope: 'queue', name: '' }, params: { query: { group } } } as const;
  const named = isOne ? 'the queue' : `group ${group}`;
  return isPaused ? (
    <Action kind="primary" done={done} run={async () => (await read(api.POST('/v1/queue/resume', request))).message}>
      Resume {named}
    </Action>
  ) : (
    <Action
      done={done}
      confirm={`Pause ${isOne ? 'the whole queue' : named}? Running jobs continue; no job is dispatched until ${isOne ? 'the queue' : 'it'} is resumed.`}
      run={async () => (await read(api.POST('/v1/queue/pause', request))).message}
    >
      Pause {named}
    </Action>
  );
}

interface JobsProps {
  readonly group: string;
  readonly title: string;
  readonly stage: JobStage;
  readonly empty: string;
}

function Jobs({ group, title, stage, empty }: JobsProps) {
  const jobs = useResource(
    `jobs ${stage}`,
    signal => read(api.GET('/v1/jobs', { params: { query: { group, state: stage, limit: SHOWN } }, signal })),
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

function Finished({ group }: { group: string }) {
  const runs = useResource(
    'finished',
    signal => read(api.GET('/v1/jobs', { params: { query: { group, state: 'finished', limit: 20 } }, signal })),
    anyJob,
  );
  return (
    <Card title="Finished runs">
      <Loaded of={runs}>{page => <RecentRuns runs={page.jobs} />}</Loaded>
    </Card>
  );
}

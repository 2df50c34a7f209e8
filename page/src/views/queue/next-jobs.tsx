// The next jobs to be dispatched, each with the reason for its position.
import type { QueueView } from '../../api/schema';
import { mayOperate } from '../../api/session';
import { plural } from '../../format/numbers';
import { formatRoute } from '../../navigation/route';
import { Badge } from '../../parts/badge';
import { Empty } from '../../parts/frame';
import { ACTIONS, type Column, List } from '../../parts/list';
import { Ago } from '../../parts/values';
import { JobActions } from './job-actions';

/** Jobs of the order that are shown. */
export const NEXT = 20;

type NextJob = QueueView['next'][number];

export function NextJobs({ queue, reload }: { queue: QueueView; reload: () => void }) {
  const held = (queue.depth['queued'] ?? 0) - queue.next.length;
  const isAll = queue.next.length < NEXT && held > 0;
  if (queue.next.length === 0) return <Empty>{isAll ? heldText(held) : 'No job waits.'}</Empty>;
  const nameOf = (job: NextJob) => queue.table_names[job.table] ?? job.table;
  const columns: Column<NextJob>[] = [
    { head: '#', place: 'right', kind: 'number', show: (_, index) => index + 1 },
    {
      head: 'Table',
      kind: 'text',
      show: job => (
        <>
          <a href={formatRoute(['tables', nameOf(job)])}>{nameOf(job)}</a>
          <span class="note block">{job.partition_label}</span>
        </>
      ),
    },
    { head: 'Tenant', place: 'wide-only', kind: 'text', show: job => job.tenant },
    { head: 'Band', place: 'wide-only', show: job => <Badge state={job.band} /> },
    { head: 'Why here', title: job => job.message, show: job => job.reason.replaceAll('_', ' ') },
    { head: 'Enqueued', place: 'wide-only', show: job => <Ago at={job.enqueued_at} /> },
  ];
  const actions: Column<NextJob> = {
    head: ACTIONS,
    place: 'right',
    show: job => <JobActions job={{ id: job.id, state: 'queued' }} reload={reload} />,
  };
  return (
    <>
      <List
        label="Next jobs"
        region="tall"
        rows={queue.next}
        keyOf={job => job.id}
        columns={mayOperate.value ? [...columns, actions] : columns}
      />
      {isAll && <p class="note">{heldText(held)}</p>}
    </>
  );
}

/** Of jobs that are queued and have no place in the order. */
function heldText(jobs: number): string {
  return `${plural(jobs, 'queued job')} cannot start now: paused, at a limit or quota, outside a window, or over budget.`;
}

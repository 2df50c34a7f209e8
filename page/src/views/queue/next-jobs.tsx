// The next jobs to be dispatched, each with the reason for its position.
import type { QueueView } from '../../api/schema';
import { mayOperate } from '../../api/session';
import { formatRoute } from '../../navigation/route';
import { Badge } from '../../parts/badge';
import { Empty } from '../../parts/frame';
import { Ago } from '../../parts/values';
import { JobActions } from './job-actions';

export function NextJobs({ queue, reload }: { queue: QueueView; reload: () => void }) {
  if (queue.next.length === 0) return <Empty>No job waits.</Empty>;
  return (
    <div class="scroll tall" tabIndex={0} role="region" aria-label="Next jobs">
      <table class="list">
        <thead>
          <tr>
            <th scope="col" class="right">
              #
            </th>
            <th scope="col">Table</th>
            <th scope="col" class="wide-only">
              Tenant
            </th>
            <th scope="col" class="wide-only">
              Band
            </th>
            <th scope="col">Why here</th>
            <th scope="col" class="wide-only">
              Enqueued
            </th>
            {mayOperate.value && (
              <th scope="col">
                <span class="hidden">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {queue.next.map((job, index) => {
            const name = queue.table_names[job.table] ?? job.table;
            return (
              <tr key={job.id}>
                <td class="right number">{index + 1}</td>
                <td>
                  <a href={formatRoute(['tables', name])}>{name}</a>
                </td>
                <td class="text wide-only">{job.tenant}</td>
                <td class="wide-only">
                  <Badge state={job.band} />
                </td>
                <td title={job.message}>{job.reason.replaceAll('_', ' ')}</td>
                <td class="wide-only">
                  <Ago at={job.enqueued_at} />
                </td>
                {mayOperate.value && (
                  <td class="right">
                    <JobActions job={{ id: job.id, state: 'queued' }} reload={reload} />
                  </td>
                )}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

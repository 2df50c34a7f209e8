// Overview: what was gained, what waits, what runs, and what needs attention.
import { api, read } from '../../api/client';
import type { DeciderStatus } from '../../api/schema';
import { always, anyJob, useResource } from '../../api/use-resource';
import { count, percent, plural, ratio } from '../../format/numbers';
import { duration } from '../../format/times';
import { Card, Figure, Figures, Head, Loaded } from '../../parts/frame';
import { Bytes, Count } from '../../parts/values';
import { RecentRuns } from '../queue/recent-runs';
import { Attention } from './attention';
import { Funnel } from './funnel';
import { QueueChart } from './queue-chart';

export function OverviewView() {
  const status = useResource('status', signal => read(api.GET('/v1/status', { signal })), always);
  const runs = useResource(
    'recent runs',
    signal => read(api.GET('/v1/jobs', { params: { query: { state: 'finished', limit: 12 } }, signal })),
    anyJob,
  );
  return (
    <>
      <Head title="Overview" sub="What Lakewright gained, what it is doing, and what needs attention." />
      <Loaded of={status}>
        {found => (
          <>
            <Gains status={found} />
            <div class="columns">
              <Attention status={found} />
              <QueueChart depth={found.queue.depth} />
            </div>
            <Card title="From commits to rewrites" note="since the queue was created">
              <Funnel counts={found.funnel} />
            </Card>
          </>
        )}
      </Loaded>
      <Card title="Recent runs">
        <Loaded of={runs}>{page => <RecentRuns runs={page.jobs} />}</Loaded>
      </Card>
    </>
  );
}

function Gains({ status }: { status: DeciderStatus }) {
  const { savings, queue, actors, tables } = status;
  const waiting = (queue.depth['queued'] ?? 0) + (queue.depth['delayed'] ?? 0);
  const running = queue.depth['leased'] ?? 0;
  const present = Object.values(actors).reduce((sum, one) => sum + one, 0);
  return (
    <Figures>
      <Figure
        label="Files removed"
        note={
          <>
            <Bytes value={savings.bytes_rewritten} /> rewritten
          </>
        }
      >
        <Count value={savings.files_removed} />
      </Figure>
      <Figure label="Write amplification" note="bytes rewritten per byte ingested">
        {savings.write_amplification === null ? '–' : ratio(savings.write_amplification)}
      </Figure>
      <Figure label="Skipped" note="of all partitions touched">
        {savings.partitions_pruned_ratio === null ? '–' : percent(savings.partitions_pruned_ratio)}
      </Figure>
      <Figure label="Tables" note={status.tables_refused ? `${count(status.tables_refused)} refused` : 'none refused'}>
        <Count value={tables} />
      </Figure>
      <Figure
        label="Jobs waiting"
        note={waiting === 0 ? `${count(running)} running` : `oldest for ${duration(queue.oldest_wait_s)}`}
      >
        <Count value={waiting} />
      </Figure>
      <Figure label="Actors" note={`${plural(actors['working'] ?? 0, 'actor')} working`}>
        <Count value={present} />
      </Figure>
    </Figures>
  );
}

// Overview: the answers to the first questions, what needs attention, the history, and the latest runs.
import { api, read } from '../../api/client';
import { always, anyJob, useReload, useResource } from '../../api/use-resource';
import { Card, Head, Loaded } from '../../parts/frame';
import { RecentRuns } from '../queue/recent-runs';
import { Answers } from './answers';
import { Attention, useFindings } from './attention';
import { Funnel } from './funnel';
import { HistoryCharts, useHistory } from './history-charts';

const TODAY_H = 24;

/** Neither a pause nor a refused tables file is an event; the decider counts jobs twice a second. */
const CONDITIONS_MS = 5_000;

export function OverviewView() {
  const status = useResource('status', signal => read(api.GET('/v1/status', { signal })), always);
  const runs = useResource(
    'recent runs',
    signal => read(api.GET('/v1/jobs', { params: { query: { state: 'finished', limit: 12 } }, signal })),
    anyJob,
  );
  const tables = useResource(
    'conditions',
    signal => read(api.GET('/v1/table-rows', { params: { query: { limit: 1 } }, signal })),
    always,
  );
  useReload(status, CONDITIONS_MS);
  useReload(tables, CONDITIONS_MS);
  const conditions = tables.data?.conditions ?? {};
  const history = useHistory(TODAY_H).data;
  const findings = useFindings(status.data, conditions);
  const problems = findings.filter(one => one.tone === 'bad').length;
  return (
    <>
      <Head title="Overview" />
      <Loaded of={status}>
        {found => (
          <>
            <Answers status={found} history={history} conditions={conditions} problems={problems} />
            <div class="columns">
              <div class="stack">
                <Attention findings={findings} />
                <Card title="From commits to rewrites" note="since the queue was created">
                  <Funnel counts={found.funnel} />
                </Card>
              </div>
              <HistoryCharts />
            </div>
          </>
        )}
      </Loaded>
      <Card title="Recent runs">
        <Loaded of={runs}>{page => <RecentRuns runs={page.jobs} />}</Loaded>
      </Card>
    </>
  );
}

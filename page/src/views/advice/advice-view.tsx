// Advice that the decider found in the background: ranked, with its proof; applied, dismissed, and judged afterwards.
import { api, read } from '../../api/client';
import type { AdviceView as StoredAdvice } from '../../api/schema';
import { mayOperate } from '../../api/session';
import { never, useResource } from '../../api/use-resource';
import { percent, plural } from '../../format/numbers';
import { duration } from '../../format/times';
import { formatRoute } from '../../navigation/route';
import { Action } from '../../parts/action';
import { Card, Empty, Head, Loaded } from '../../parts/frame';
import { formatProperties } from '../table/properties-text';

export function AdviceView() {
  const query = {
    status: ['open', 'applying', 'applied', 'judged'] as ('open' | 'applying' | 'applied' | 'judged')[],
    limit: 50,
  };
  const found = useResource('advice', signal => read(api.GET('/v1/advice', { params: { query }, signal })), never);
  return (
    <>
      <Head title="Advice" sub="What a change of policy would have saved, by each table's own log and reported reads" />
      <Loaded of={found}>
        {list => (
          <>
            <p class="note text">
              {plural(list.tables_analyzed, 'table')} analyzed in the background
              {list.saved_share !== null &&
                `; ${plural(list.judged, 'applied change')} saved ${percent(list.saved_share)} of the cost on average, ${percent(list.predicted_share ?? 0)} predicted`}
              .
            </p>
            {list.advice.length === 0 && (
              <Empty>
                No advice. It needs 50 commits over a day, and a saving of a tenth of the cost and a core-minute a day,
                in the whole history and in each half of it. Any policy can be tried under What-if of a table.
              </Empty>
            )}
            <ol class="advice" aria-label="Found in the background">
              {list.advice.map(one => (
                <AdviceCard key={`${one.table} ${one.id}`} advice={one} reload={found.reload} />
              ))}
            </ol>
          </>
        )}
      </Loaded>
    </>
  );
}

function savingText({ saved_s_per_day, saved_share }: StoredAdvice): string {
  if (saved_s_per_day === null || saved_share === null) return 'saving not known';
  return `saves ${duration(saved_s_per_day)} of core time a day, ${percent(saved_share)}`;
}

function costText({ held, bounds, log }: StoredAdvice['proof']): string {
  if (log !== null) return 'opening the table and writing checkpoints';
  if (bounds !== null) return 'reading the files that bounds might spare';
  return held === null ? 'rewriting and reading' : 'storage, counted as core time';
}

function changeText({ needs_owner, statement, change }: StoredAdvice): string {
  return needs_owner && statement !== '' ? statement : formatProperties(change);
}

function AdviceCard({ advice, reload }: { advice: StoredAdvice; reload: () => void }) {
  const { proof, judgement } = advice;
  const path = { name: advice.table, advice: advice.id };
  return (
    <li>
      <Card title={advice.table} note={`${advice.status}, ${savingText(advice)}`}>
        <p>{advice.message}</p>
        <pre class="block">{changeText(advice)}</pre>
        <p class="note">
          Proof: {plural(proof.commits, 'commit')} over {duration(proof.hours * 3600)} cost{' '}
          {proof.bounds === null && `${duration(proof.after.cost_s)} instead of `}
          {duration(proof.before.cost_s)} of {costText(proof)}.{' '}
          <a href={formatRoute(['tables', advice.table], { tab: 'what-if' })}>Compare all rules</a>
        </p>
        {judgement !== null && (
          <p class="note">
            Since then, over {plural(judgement.commits, 'commit')}: {percent(judgement.saved_share)} saved,{' '}
            {advice.saved_share === null
              ? 'which no one could predict'
              : `${percent(judgement.predicted_share)} predicted`}
            .
          </p>
        )}
        {advice.problem !== '' && <p class="note">The last attempt to alter the table failed: {advice.problem}</p>}
        {advice.status === 'open' && mayOperate.value && (
          <div class="job-actions">
            {!advice.needs_owner && (
              <Action
                kind="primary"
                done={reload}
                confirm={`Alter ${advice.table}? One ALTER TABLE sets these properties; Delta aborts other transactions that are open on the table then.`}
                run={async () => {
                  await read(
                    api.POST('/v1/tables/{name}/advice/{advice}/apply', {
                      params: { path },
                      body: { dry_run: false, override: false },
                    }),
                  );
                  return `A job alters ${advice.table}.`;
                }}
              >
                Apply
              </Action>
            )}
            <Action
              done={reload}
              run={async () => {
                await read(api.POST('/v1/tables/{name}/advice/{advice}/dismiss', { params: { path } }));
                return `The advice for ${advice.table} is dismissed.`;
              }}
            >
              Dismiss
            </Action>
          </div>
        )}
      </Card>
    </li>
  );
}

// Advice: tables ranked by what a change of their policy would have saved, each with the change and the proof.
import { api, read } from '../../api/client';
import { mayOperate } from '../../api/session';
import { count, percent, plural } from '../../format/numbers';
import { duration } from '../../format/times';
import { formatRoute } from '../../navigation/route';
import { Action } from '../../parts/action';
import { Card, Empty, Head } from '../../parts/frame';
import { formatProperties } from '../table/properties-text';
import { dismiss, dismissed, restoreAll } from './dismissed';
import { StoredAdvice } from './stored-advice';
import { identity, ranked, type Advice } from './ranking';
import { useAdvice } from './use-advice';

export function AdviceView() {
  const { found, failed, done, total, isRunning, problem, start } = useAdvice();
  const shown = ranked(found, dismissed.value);
  const isComplete = !isRunning && done > 0;
  return (
    <>
      <Head title="Advice" sub="What a change of policy would have saved, by a replay of each table's own log">
        <button type="button" class="primary" disabled={isRunning} onClick={start}>
          {isRunning ? `Replaying, ${count(done)} of ${count(total)} tables…` : 'Replay the logs'}
        </button>
      </Head>
      <StoredAdvice />
      {problem !== '' && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {!isRunning && done === 0 && problem === '' && (
        <Empty>
          The decider replays the latest commits of the ten tables with most small files under other policies. Nothing
          is changed.
        </Empty>
      )}
      {isComplete && shown.length === 0 && (
        <Empty>No change would have saved anything on {plural(done - failed.length, 'table')}.</Empty>
      )}
      <ol class="advice">
        {shown.map(one => (
          <AdviceCard key={identity(one)} advice={one} reload={start} />
        ))}
      </ol>
      {failed.map(one => (
        <p key={one.name} class="note text">
          {one.name} was not replayed: {one.problem}
        </p>
      ))}
      {dismissed.value.size > 0 && (
        <p class="note">
          {plural(dismissed.value.size, 'dismissed change')}{' '}
          <button type="button" class="plain" onClick={restoreAll}>
            Show again
          </button>
        </p>
      )}
    </>
  );
}

function AdviceCard({ advice, reload }: { advice: Advice; reload: () => void }) {
  const { table, answer, savedS, change } = advice;
  const { current_cost_s: now, cost_s: then, message } = answer.recommendation;
  return (
    <li>
      <Card
        title={table.name}
        note={`saves ${duration(savedS)} of core time${now > 0 ? `, ${percent(savedS / now)}` : ''}`}
      >
        <p>{message}</p>
        <pre class="block">{formatProperties(change)}</pre>
        <p class="note">
          Proof: {plural(answer.commits, 'commit')} over {duration(answer.span_s)} cost {duration(then)} instead of{' '}
          {duration(now)} of rewriting and opening files.{' '}
          <a href={formatRoute(['tables', table.name], { tab: 'what-if' })}>Compare all rules</a>
        </p>
        <div class="job-actions">
          {mayOperate.value && (
            <Action
              kind="primary"
              done={reload}
              confirm={`Set these overrides on ${table.name}? They take effect with the next refresh, and eligible partitions are queued.`}
              run={() => apply(table.name, change)}
            >
              Apply
            </Action>
          )}
          <button type="button" onClick={() => dismiss(identity(advice))}>
            Dismiss
          </button>
        </div>
      </Card>
    </li>
  );
}

/** Adds the change to the overrides that the table has now. */
async function apply(name: string, change: Readonly<Record<string, string>>): Promise<string> {
  const path = { name };
  const table = await read(api.GET('/v1/tables/{name}', { params: { path } }));
  const properties = { ...table.properties, ...change };
  await read(api.PATCH('/v1/tables/{name}', { params: { path }, body: { properties } }));
  return `The policy of ${name} is changed.`;
}

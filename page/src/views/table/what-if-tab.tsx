// What-if: the table's own history under other rules and another policy; nothing is changed until it is applied.
import { useEffect, useState } from 'preact/hooks';
import { api, read, sentence } from '../../api/client';
import type { TableStatus, WhatIfResponse } from '../../api/schema';
import { mayOperate } from '../../api/session';
import { duration } from '../../format/times';
import { count, plural } from '../../format/numbers';
import { Action } from '../../parts/action';
import { Card } from '../../parts/frame';
import { formatProperties, parseProperties } from './properties-text';
import { RuleChart } from './rule-chart';
import { RuleList } from './rule-list';

// What a replay assumes where a person sets nothing else: the defaults of the API, which its types require to be named.
const COST_MODEL = { open_s: 0.05, write_s_per_gib: 20, tail_hours: 24 } as const;
const QUERIES_PER_HOUR = 10;

/** Commits that are replayed at most. */
const COMMITS = 1_000;

export function WhatIfTab({ table, reload }: { table: TableStatus; reload: () => void }) {
  const [text, setText] = useState('');
  const [queries, setQueries] = useState<number>(QUERIES_PER_HOUR);
  const [answer, setAnswer] = useState<WhatIfResponse | null>(null);
  const [problem, setProblem] = useState('');
  const [isRunning, setRunning] = useState(false);

  const replay = () => {
    setRunning(true);
    setProblem('');
    Promise.resolve()
      .then(() => ({ properties: parseProperties(text), queries_per_hour: queries, max_commits: COMMITS }))
      .then(body =>
        read(
          api.POST('/v1/tables/{name}/what-if', {
            params: { path: { name: table.name } },
            body: { ...COST_MODEL, ...body, sort_keys: [] },
          }),
        ),
      )
      .then(setAnswer)
      .catch((failure: unknown) => setProblem(sentence(failure)))
      .finally(() => setRunning(false));
  };
  useEffect(replay, [table.name]);

  return (
    <>
      <Card title="Try a policy" note="replays the latest commits; nothing is changed">
        <form
          class="form-row"
          onSubmit={event => {
            event.preventDefault();
            replay();
          }}
        >
          <label class="field grow">
            <span>Properties to try, one per line</span>
            <textarea
              rows={2}
              spellcheck={false}
              placeholder={'fan-in = 4\ntarget-file-size = 64mb'}
              value={text}
              onInput={event => setText(event.currentTarget.value)}
            />
          </label>
          <label class="field">
            <span>Queries per hour</span>
            <input
              type="number"
              min={0}
              max={1_000_000}
              value={queries}
              onInput={event => setQueries(event.currentTarget.valueAsNumber || 0)}
            />
          </label>
          <button type="submit" class="primary" disabled={isRunning}>
            {isRunning ? 'Replaying…' : 'Replay'}
          </button>
        </form>
        {problem !== '' && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
      </Card>
      {answer !== null && <Answer answer={answer} table={table} reload={reload} />}
    </>
  );
}

function Answer({ answer, table, reload }: { answer: WhatIfResponse; table: TableStatus; reload: () => void }) {
  const { recommendation, custom } = answer;
  const proposed = custom?.properties ?? recommendation.properties;
  return (
    <>
      <Card title="Recommendation" note={`${plural(answer.commits, 'commit')} over ${duration(answer.span_s)}`}>
        <p>{recommendation.message}</p>
        {Object.keys(proposed).length > 0 && (
          <>
            <pre class="block">{formatProperties(proposed)}</pre>
            {mayOperate.value && (
              <Action
                kind="primary"
                done={reload}
                confirm={`Set these overrides on ${table.name}? They take effect with the next refresh, and eligible partitions are queued.`}
                run={async () => {
                  const properties = { ...table.properties, ...proposed };
                  const path = { name: table.name };
                  await read(api.PATCH('/v1/tables/{name}', { params: { path }, body: { properties } }));
                  return `The policy of ${table.name} is changed.`;
                }}
              >
                {custom === null ? 'Apply the recommendation' : 'Apply these properties'}
              </Action>
            )}
          </>
        )}
        {answer.notes.map(note => (
          <p key={note} class="note">
            {note}
          </p>
        ))}
      </Card>
      <Card title="Files under each rule" note={`${count(answer.files_added)} files added`}>
        <RuleChart rules={answer.rules} />
      </Card>
      <Card title="Cost of each rule" note="core-seconds of rewriting and of opening files">
        <RuleList rules={answer.rules} />
      </Card>
    </>
  );
}

// What needs attention: each finding is a sentence, and a link to where it can be examined.
import type { ComponentChildren } from 'preact';
import { api, read } from '../../api/client';
import type { DeciderStatus } from '../../api/schema';
import { anyTable, useResource } from '../../api/use-resource';
import { plural } from '../../format/numbers';
import { duration } from '../../format/times';
import { formatRoute } from '../../navigation/route';
import { Card, Empty } from '../../parts/frame';

interface Finding {
  readonly key: string;
  readonly tone: 'bad' | 'warn';
  readonly text: ComponentChildren;
}

const STALE_BACKLOG_S = 60;

export function Attention({ status }: { status: DeciderStatus }) {
  const actors = useResource('unserved', signal => read(api.GET('/v1/actors', { signal })), anyTable);
  const tables = useResource(
    'conditions',
    signal => read(api.GET('/v1/table-rows', { params: { query: { limit: 1 } }, signal })),
    anyTable,
  );
  const conditions = tables.data?.conditions ?? {};
  const findings: Finding[] = [
    ...statusFindings(status),
    ...tableFindings(conditions),
    ...(actors.data?.unserved ?? []).map(one => ({
      key: `unserved ${one.ability}`,
      tone: 'bad' as const,
      text: (
        <a href={formatRoute(['actors'])}>
          {plural(one.jobs, 'job')} cannot run: no actor can do <code>{one.ability}</code>
        </a>
      ),
    })),
  ];
  return (
    <Card title="Needs attention" note={findings.length === 0 ? undefined : plural(findings.length, 'finding')}>
      {findings.length === 0 ? (
        <Empty>
          Nothing: Redis is durable, every job has an actor that can run it, and no table is refused or fails.
        </Empty>
      ) : (
        <ul class="findings">
          {findings.map(one => (
            <li key={one.key} class={one.tone}>
              {one.text}
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function statusFindings(status: DeciderStatus): Finding[] {
  const found: Finding[] = status.redis.issues.map(text => ({ key: text, tone: 'bad', text }));
  const present = (status.actors['working'] ?? 0) + (status.actors['idle'] ?? 0);
  const waiting = status.queue.depth['queued'] ?? 0;
  if (present === 0 && waiting > 0) {
    const text = <a href={formatRoute(['actors'])}>No actor takes jobs, and {plural(waiting, 'job')} wait.</a>;
    found.push({ key: 'no actor', tone: 'bad', text });
  }
  if (!status.defaults.in_sync) {
    const text = 'This decider was started with other defaults than the ones in effect.';
    found.push({ key: 'defaults', tone: 'warn', text });
  }
  if (status.backlog.oldest_wait_s > STALE_BACKLOG_S) {
    const text = `${plural(status.backlog.tables_waiting, 'table')} wait to be read, the first for ${duration(status.backlog.oldest_wait_s)}.`;
    found.push({ key: 'backlog', tone: 'warn', text });
  }
  return found;
}

function tableFindings(conditions: Readonly<Record<string, number>>): Finding[] {
  const texts = [
    ['failing', 'bad', 'has a quarantined job', 'have a quarantined job'],
    ['refused', 'warn', 'is refused', 'are refused'],
  ] as const;
  return texts.flatMap(([condition, tone, one, many]) => {
    const found = conditions[condition] ?? 0;
    if (found === 0) return [];
    const link = formatRoute(['tables'], { condition });
    return [
      { key: condition, tone, text: <a href={link}>{`${plural(found, 'table')} ${found === 1 ? one : many}`}</a> },
    ];
  });
}

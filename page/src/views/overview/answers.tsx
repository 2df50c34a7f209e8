// The first screen answers three questions: is it working, what did it do, what will it do.
import type { ComponentChildren } from 'preact';
import type { DeciderStatus, FleetHistoryView } from '../../api/schema';
import { bytes, plural } from '../../format/numbers';
import { formatRoute } from '../../navigation/route';
import { Card } from '../../parts/frame';
import { Ago, now } from '../../parts/values';
import { workDone } from './work-done';

interface Known {
  readonly status: DeciderStatus;
  readonly history: FleetHistoryView | undefined;
  readonly conditions: Readonly<Record<string, number>>;
  readonly problems: number;
}

export function Answers(known: Known) {
  return (
    <div class="answers">
      <Answer title="Is it working?" tone={known.problems === 0 ? 'good' : 'bad'} lines={isWorking(known)} />
      <Answer title="What did it do?" lines={workDone(known.status, known.history, now.value)} />
      <Answer title="What will it do?" lines={willDo(known)} />
    </div>
  );
}

function Answer({ title, tone = '', lines }: { title: string; tone?: string; lines: ComponentChildren[] }) {
  const [first, ...others] = lines;
  return (
    <Card title={title} class={`answer ${tone}`}>
      <p class="headline">{first}</p>
      {others.map((line, at) => (
        <p key={at}>{line}</p>
      ))}
    </Card>
  );
}

function isWorking({ status, problems }: Known): ComponentChildren[] {
  const { actors, queue, tables } = status;
  const present = (actors['working'] ?? 0) + (actors['idle'] ?? 0);
  return [
    problems === 0 ? 'Yes.' : `Not all of it: ${plural(problems, 'problem')} below.`,
    `${plural(tables ?? 0, 'table')} followed, ${plural(present, 'actor')}, ${plural(queue.depth['leased'] ?? 0, 'job')} running.`,
  ];
}

function willDo({ status, history, conditions }: Known): ComponentChildren[] {
  const { depth } = status.queue;
  const waiting = (depth['queued'] ?? 0) + (depth['delayed'] ?? 0);
  const paused = conditions['paused'] ?? 0;
  const left = history?.backlog.left_bytes ?? 0;
  const ends = history?.backlog.ends_at ?? null;
  const end = ends !== null && (
    <>
      , done <Ago at={ends} /> at the present pace
    </>
  );
  return [
    waiting === 0 ? 'Nothing waits.' : `${plural(waiting, 'job')} ${waiting === 1 ? 'waits' : 'wait'}.`,
    left === 0 ? (
      'The existing files are rewritten; each new commit is evaluated.'
    ) : (
      <>
        Of the existing files, {bytes(left)} are still to be rewritten, once{end}.
      </>
    ),
    ...(paused === 0
      ? []
      : [<a href={formatRoute(['tables'], { condition: 'paused' })}>{plural(paused, 'table')} paused</a>]),
  ];
}

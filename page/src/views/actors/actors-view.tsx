// Actors: version, slots, abilities, current work; an operator can drain one before it is stopped.
import { api, read } from '../../api/client';
import { groupOfAddress, useGroups } from '../../api/groups';
import type { ActorView } from '../../api/schema';
import { mayOperate } from '../../api/session';
import { anyJob, useReload, useResource } from '../../api/use-resource';
import { plural } from '../../format/numbers';
import { duration } from '../../format/times';
import { Action } from '../../parts/action';
import { Badge } from '../../parts/badge';
import { ErrorText } from '../../parts/error-text';
import { Card, Empty, Head, Loaded } from '../../parts/frame';
import { GroupChoice } from '../../parts/group-choice';
import { Ago, Meter } from '../../parts/values';

/** Heartbeats are no events: while this view is visible, actors are read at their pace. */
const HEARTBEAT_MS = 5_000;

export function ActorsView() {
  const group = groupOfAddress();
  const query = group === '' ? {} : { group };
  const actors = useResource(
    `actors ${group}`,
    signal => read(api.GET('/v1/actors', { params: { query }, signal })),
    anyJob,
  );
  useReload(actors, HEARTBEAT_MS);
  const groups = (useGroups().data ?? []).map(one => one.group);
  const found = actors.data;
  const sub =
    found === undefined
      ? undefined
      : `${plural(found.actors.length, 'actor')} with ${plural(found.slots, 'slot')}, ${found.busy_slots} busy`;
  return (
    <>
      <Head title="Actors" sub={sub}>
        <GroupChoice groups={groups} />
      </Head>
      <Loaded of={actors}>
        {({ actors: all, unserved }) => (
          <>
            {unserved.map(one => (
              <p key={one.ability} class="problem" role="alert">
                {plural(one.jobs, 'job')} cannot run: no actor can do <code>{one.ability}</code>.
              </p>
            ))}
            {all.length === 0 && <Empty>No actor is registered; jobs wait until one starts.</Empty>}
            <div class="actors">
              {all.map(one => (
                <Actor key={one.id} actor={one} reload={actors.reload} />
              ))}
            </div>
          </>
        )}
      </Loaded>
    </>
  );
}

function Actor({ actor, reload }: { actor: ActorView; reload: () => void }) {
  const canDrain = actor.state === 'working' || actor.state === 'idle';
  return (
    <Card title={actor.id} note={<Badge state={actor.state} />}>
      <div class="progress">
        <Meter value={actor.slots === 0 ? 0 : actor.jobs.length / actor.slots} tone="busy" />
        <span class="note">
          {plural(actor.jobs.length, 'job')} running on {plural(actor.slots, 'slot')}
        </span>
      </div>
      {actor.error !== '' && <ErrorText text={actor.error} />}
      <dl class="details">
        <dt>Group</dt>
        <dd>{actor.group}</dd>
        <dt>Host</dt>
        <dd>{actor.host}</dd>
        <dt>Started</dt>
        <dd>
          <Ago at={actor.started_at} />
        </dd>
        <dt>Heartbeat</dt>
        <dd class="number">
          {duration(actor.heartbeat_age_s)} ago, expires after {duration(actor.expires_after_s)}
        </dd>
        <dt>Abilities</dt>
        <dd>{actor.abilities.join(', ')}</dd>
        <dt>Versions</dt>
        <dd>
          {Object.entries(actor.versions)
            .map(([name, version]) => `${name} ${version}`)
            .join(', ')}
        </dd>
        <dt>Jobs</dt>
        <dd>
          {actor.jobs.length === 0 ? (
            'none'
          ) : (
            <ul class="plain-list">
              {actor.jobs.map(job => (
                <li key={job}>
                  <code>{job}</code>
                </li>
              ))}
            </ul>
          )}
        </dd>
      </dl>
      {mayOperate.value && canDrain && (
        <Action
          done={reload}
          confirm={`Drain ${actor.id}? It finishes its jobs and claims no more until it is restarted.`}
          run={async () =>
            (await read(api.POST('/v1/actors/{actor}/drain', { params: { path: { actor: actor.id } } }))).message
          }
        >
          Drain
        </Action>
      )}
    </Card>
  );
}

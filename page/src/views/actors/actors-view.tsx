// Actors: version, slots, abilities, current work; an operator can drain one before it is stopped.
import { api, read } from '../../api/client';
import { groupOfAddress, useGroups } from '../../api/groups';
import type { ActorView, GroupView } from '../../api/schema';
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
  const known = useGroups();
  useReload(known, HEARTBEAT_MS);
  const groups = known.data ?? [];
  const found = actors.data;
  const sub =
    found === undefined
      ? undefined
      : `${plural(found.actors.length, 'actor')} with ${plural(found.slots, 'slot')}, ${found.busy_slots} busy`;
  return (
    <>
      <Head title="Actors" sub={sub}>
        <GroupChoice groups={groups.map(one => one.group)} />
      </Head>
      {groups
        .filter(one => group === '' || one.group === group)
        .map(one => (
          <Scale key={one.group} of={one} reload={known.reload} />
        ))}
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

/** The number of actors of a group, where the standalone starts and ends them. */
function Scale({ of: { group, actors, wanted_actors: wanted }, reload }: { of: GroupView; reload: () => void }) {
  if (wanted === null) return null;
  const set = (count: number) => async () => {
    await read(api.PATCH('/v1/queue/settings', { params: { query: { group } }, body: { actors: count } }));
    return `Group ${group} is to have ${plural(count, 'actor')}; one that ends finishes its file group first.`;
  };
  return (
    <p class="progress">
      <span>
        Group <strong>{group}</strong>: {plural(actors, 'actor')}, {wanted} wanted
      </span>
      {mayOperate.value && (
        <>
          <Action kind="small" label={`Start one more actor of ${group}`} done={reload} run={set(wanted + 1)}>
            Start one
          </Action>
          {wanted > 0 && (
            <Action kind="small" label={`Release an actor of ${group}`} done={reload} run={set(wanted - 1)}>
              Release one
            </Action>
          )}
        </>
      )}
    </p>
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
          {actor.jobs.length > actor.slots && '; jobs of a table share one'}
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

// What tenants and tables use of the slots, against the queue's settings for each: weight, limit or quota, and pause.
import type { QueueView } from '../../api/schema';

export type ShareScope = 'tenant' | 'table';

export interface Share {
  readonly scope: ShareScope;
  /** Name of a tenant, id of a table. */
  readonly id: string;
  readonly name: string;
  readonly waiting: number;
  readonly oldestWaitS: number | undefined;
  /** Share of all slots' time that it used. */
  readonly used: number | undefined;
  /** The same as a share of its quota or limit; undefined without one. */
  readonly ofQuota: number | undefined;
  readonly weight: number;
  /** Jobs at once (`4`), or share of the slots (`25%`); empty: no limit. */
  readonly limit: string;
  readonly isPaused: boolean;
}

/** Share of a quota above which it is oversold: slot time that is measured by runs varies by less. */
export const OVERSOLD = 1.05;

const PAUSED = '!';

/** Tenants or tables that have jobs, used slots, or have a weight or a limit; one that is only paused is none. */
export function sharesOf(
  scope: ShareScope,
  queue: Pick<
    QueueView,
    'tenants' | 'tables' | 'table_names' | 'oldest_waits_s' | 'occupancy' | 'quota_occupation' | 'settings'
  >,
): Share[] {
  const every = `${scope}s` as const;
  const used = queue.occupancy[every] ?? {};
  const oldest = queue.oldest_waits_s[every] ?? {};
  const ofQuota = queue.quota_occupation[every] ?? {};
  const named = Object.entries(queue.settings).flatMap(([key, value]) => {
    const [of, id] = key.replace(/^(weight|limit):/, '').split('|', 2);
    return of === scope && id !== undefined && (scope === 'tenant' || value !== PAUSED) ? [id] : [];
  });
  const ids = new Set([...Object.keys(queue[every]), ...Object.keys(used), ...named]);
  return [...ids]
    .map(id => {
      const limit = queue.settings[`limit:${scope}|${id}`] ?? '';
      return {
        scope,
        id,
        name: queue.table_names[id] ?? id,
        waiting: queue[every][id] ?? 0,
        oldestWaitS: oldest[id],
        used: used[id],
        ofQuota: ofQuota[id],
        weight: Number(queue.settings[`weight:${scope}|${id}`] ?? 1),
        limit: limit.replace(PAUSED, ''),
        isPaused: limit.startsWith(PAUSED),
      };
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** What a person typed as a limit: `25%` of the slots, `4` jobs, or nothing for no limit. */
export function parseLimit(text: string): { quota_percent: number } | { limit: number } {
  const trimmed = text.trim();
  if (trimmed === '') return { limit: 0 };
  const value = Number(trimmed.replace(/%$/, ''));
  if (!Number.isInteger(value) || value < 1)
    throw new Error(`${trimmed}: write a share such as 25%, a number of jobs, or nothing`);
  return trimmed.endsWith('%') ? { quota_percent: value } : { limit: value };
}

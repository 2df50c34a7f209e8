// The queue's settings for each tenant: weight, limit or quota, and whether it is paused.
import type { QueueView } from '../../api/schema';

export interface TenantShare {
  readonly name: string;
  readonly waiting: number;
  readonly oldestWaitS: number | undefined;
  /** Share of all slots' time that it used. */
  readonly used: number | undefined;
  readonly weight: number;
  /** Jobs at once (`4`), or share of the slots (`25%`); empty: no limit. */
  readonly limit: string;
  readonly isPaused: boolean;
}

const PAUSED = '!';

export function tenantShares(
  queue: Pick<QueueView, 'tenants' | 'oldest_waits_s' | 'occupancy' | 'settings'>,
): TenantShare[] {
  const used = queue.occupancy['tenants'] ?? {};
  const oldest = queue.oldest_waits_s['tenants'] ?? {};
  const named = Object.keys(queue.settings).flatMap(key => {
    const [scope, name] = key.replace(/^(weight|limit):/, '').split('|', 2);
    return scope === 'tenant' && name !== undefined ? [name] : [];
  });
  const names = new Set([...Object.keys(queue.tenants), ...Object.keys(used), ...named]);
  return [...names].sort().map(name => {
    const limit = queue.settings[`limit:tenant|${name}`] ?? '';
    return {
      name,
      waiting: queue.tenants[name] ?? 0,
      oldestWaitS: oldest[name],
      used: used[name],
      weight: Number(queue.settings[`weight:tenant|${name}`] ?? 1),
      limit: limit.replace(PAUSED, ''),
      isPaused: limit.startsWith(PAUSED),
    };
  });
}

/** A quota as a share of all slots; undefined for a limit in jobs, or none. */
export function quotaShare(limit: string): number | undefined {
  return limit.endsWith('%') ? Number(limit.slice(0, -1)) / 100 : undefined;
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

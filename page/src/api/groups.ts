// Groups of the queue that the decider serves; the address keeps which of them a viewer has chosen.
import { route } from '../navigation/route';
import { api, read } from './client';
import type { LiveEvent } from './live';
import type { GroupView } from './schema';
import { never, type Resource, useResource } from './use-resource';

export function useGroups(concerns: (event: LiveEvent) => boolean = never): Resource<readonly GroupView[]> {
  return useResource('groups', async signal => (await read(api.GET('/v1/groups', { signal }))).groups, concerns);
}

/** The group that the address names; empty: none. */
export function groupOfAddress(): string {
  return route.value.params['group'] ?? '';
}

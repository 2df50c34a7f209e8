// The address of a view: a path and parameters behind the `#`, so that every view can be linked and the server needs
// to know none of them.
import { signal } from '@preact/signals';

export interface Route {
  /** Parts of the path: `[]` is the overview, `['tables', 'sales.orders']` a table. */
  readonly path: readonly string[];
  readonly params: Readonly<Record<string, string>>;
}

export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#/, '').split('?', 2);
  const parts = path.split('/').filter(part => part !== '');
  return { path: parts.map(decoded), params: Object.fromEntries(new URLSearchParams(query)) };
}

export function formatRoute(path: readonly string[], params: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== '')).toString();
  return `#/${path.map(encodeURIComponent).join('/')}${query === '' ? '' : `?${query}`}`;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // A hand-written address with a lone `%`.
  }
}

export const route = signal<Route>({ path: [], params: {} });

export function followAddress(): void {
  const read = () => (route.value = parseRoute(location.hash));
  addEventListener('hashchange', read);
  read();
}

/** Changes parameters of the present view, without a new entry in the browser's history; empty text removes one. */
export function setParams(changes: Readonly<Record<string, string>>): void {
  const next = { ...route.value.params, ...changes };
  history.replaceState(null, '', formatRoute(route.value.path, next));
  route.value = parseRoute(location.hash);
}

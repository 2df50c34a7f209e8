// Who uses the page: the token, typed once and kept for this tab alone, and the role that it has.
import { computed, signal } from '@preact/signals';
import type { CallerView } from './schema';

const KEY = 'lakewright.token';

export const token = signal<string>(sessionStorage.getItem(KEY) ?? '');

/** Whether a request waits for a token; the page shows a dialog as long as one does. */
export const isTokenRequired = signal(false);

/** Whether the last token was refused, for the sentence of the dialog. */
export const isTokenRefused = signal(false);

export const caller = signal<CallerView | null>(null);

export const mayOperate = computed(() => caller.value?.may_act_as.includes('operator') ?? false);
export const mayAdminister = computed(() => caller.value?.may_act_as.includes('admin') ?? false);

let waiting: (() => void)[] = [];

/** Resolves when there is another token than the one that was refused; requests wait here and are then repeated. */
export function otherToken(refused: string): Promise<void> {
  if (token.value !== refused) return Promise.resolve();
  isTokenRefused.value = refused !== '';
  isTokenRequired.value = true;
  return new Promise(resolve => waiting.push(resolve));
}

export function setToken(value: string): void {
  token.value = value;
  if (value === '') sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, value);
  isTokenRequired.value = false;
  const resolved = waiting;
  waiting = [];
  for (const resume of resolved) resume();
}

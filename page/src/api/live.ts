// The event stream of the decider: one connection per visible tab; a hidden tab has none and costs nothing.
//
// A lost connection is shown and made again; what was missed meanwhile is read again (`resync`), so that a view never
// has to be reloaded.
import { signal } from '@preact/signals';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { BASE, fetchWithToken } from './client';

export type LiveEvent =
  | { readonly kind: 'tables'; readonly ids: ReadonlySet<string>; readonly more: boolean }
  | { readonly kind: 'job'; readonly table: string }
  | { readonly kind: 'queue' }
  | { readonly kind: 'resync' };

export type Connection = 'connecting' | 'live' | 'lost' | 'hidden';

export const connection = signal<Connection>('connecting');

/** Longest silence: the decider sends a comment every 15 seconds. */
const SILENCE_MS = 20_000;
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 5_000;

type Listener = (event: LiveEvent) => void;
const listeners = new Set<Listener>();
let lastId = '';
let wasConnected = false;
let current: AbortController | null = null;

/** Calls a function at each event until the returned function is called. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

export function startLive(): void {
  document.addEventListener('visibilitychange', followVisibility);
  followVisibility();
}

function followVisibility(): void {
  if (document.visibilityState === 'hidden') {
    connection.value = 'hidden';
    current?.abort();
    current = null;
  } else if (current === null) {
    current = new AbortController();
    void keepConnected(current.signal);
  }
}

async function keepConnected(ended: AbortSignal): Promise<void> {
  let waitMs = RETRY_MS;
  if (!wasConnected) connection.value = 'connecting';
  while (!ended.aborted) {
    try {
      await readStream(ended, () => (waitMs = RETRY_MS));
    } catch {
      // Each end of a stream is the same to a reader: it was lost.
    }
    if (isOver(ended)) return;
    connection.value = 'lost';
    await new Promise(resolve => setTimeout(resolve, waitMs));
    waitMs = Math.min(2 * waitMs, MAX_RETRY_MS);
  }
}

/** The flag changes while others run, which a type checker does not expect. */
function isOver(ended: AbortSignal): boolean {
  return ended.aborted;
}

async function readStream(ended: AbortSignal, connected: () => void): Promise<void> {
  const attempt = new AbortController();
  const stop = () => attempt.abort();
  ended.addEventListener('abort', stop);
  let silence = setTimeout(stop, SILENCE_MS);
  try {
    const query = 'about=tables&about=jobs&about=queue';
    const headers: Record<string, string> = { accept: 'text/event-stream' };
    if (lastId !== '') headers['last-event-id'] = lastId;
    const request = new Request(`${BASE}/v1/stream?${query}`, { headers, signal: attempt.signal, cache: 'no-store' });
    const response = await fetchWithToken(request);
    if (!response.ok || response.body === null) throw new Error(`the stream answered with ${response.status}`);
    const parser = createParser({ onEvent: message => receive(message, connected) });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(silence);
      silence = setTimeout(stop, SILENCE_MS);
      parser.feed(value);
    }
  } finally {
    clearTimeout(silence);
    ended.removeEventListener('abort', stop);
  }
}

function receive(message: EventSourceMessage, connected: () => void): void {
  if (message.id !== undefined && message.id !== '') lastId = message.id;
  if (message.event === 'connected') {
    connected();
    connection.value = 'live';
    if (wasConnected) publish({ kind: 'resync' });
    wasConnected = true;
    return;
  }
  const event = decoded(message);
  if (event !== null) publish(event);
}

export function decoded(message: Pick<EventSourceMessage, 'event' | 'data'>): LiveEvent | null {
  switch (message.event) {
    case 'tables': {
      const { table_ids, more } = JSON.parse(message.data) as { table_ids: string[]; more: boolean };
      return { kind: 'tables', ids: new Set(table_ids), more };
    }
    case 'job':
      return { kind: 'job', table: (JSON.parse(message.data) as { table_id: string }).table_id };
    case 'queue':
      return { kind: 'queue' };
    default:
      return null;
  }
}

function publish(event: LiveEvent): void {
  for (const listener of listeners) listener(event);
}

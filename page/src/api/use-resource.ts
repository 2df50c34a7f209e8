// Data of a view: read when the view opens, and again when the event stream reports a change.
import { useEffect, useRef, useState } from 'preact/hooks';
import { sentence } from './client';
import { listen, type LiveEvent } from './live';

export interface Resource<T> {
  /** The newest data; kept while newer data is read, and if that fails. */
  readonly data: T | undefined;
  readonly problem: string;
  readonly reload: () => void;
}

/** Shortest time between two reads that events lead to: many commits a second are one read. */
const PAUSE_MS = 700;

/** Pause before a read that failed is repeated. */
const RETRY_MS = 5_000;

/**
 * Reads data for a key, again when the key changes, and again after each event that concerns it.
 * The first event after a pause is answered at once.
 */
export function useResource<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  concerns: (event: LiveEvent) => boolean,
): Resource<T> {
  const [state, setState] = useState<{ key: string; data?: T; problem: string }>({ key, problem: '' });
  const reader = useRef({ load, concerns });
  reader.current = { load, concerns };
  const [round, setRound] = useState(0);

  useEffect(() => {
    const ended = new AbortController();
    let isReading = false;
    let isPending = false;
    let readAt = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;

    const start = () => {
      timer = undefined;
      isReading = true;
      isPending = false;
      readAt = performance.now();
      reader.current
        .load(ended.signal)
        .then(data => {
          if (!ended.signal.aborted) setState({ key, data, problem: '' });
        })
        .catch((failure: unknown) => {
          if (ended.signal.aborted) return;
          setState(last => ({ ...last, key, problem: sentence(failure) }));
          timer ??= setTimeout(start, RETRY_MS);
        })
        .finally(() => {
          isReading = false;
          if (isPending && !ended.signal.aborted) request();
        });
    };
    const request = () => {
      isPending = true;
      if (isReading || timer !== undefined) return;
      timer = setTimeout(start, Math.max(0, PAUSE_MS - (performance.now() - readAt)));
    };
    start();
    const silence = listen(event => {
      if (event.kind === 'resync' || reader.current.concerns(event)) request();
    });
    return () => {
      silence();
      clearTimeout(timer);
      ended.abort();
    };
  }, [key, round]);

  return { data: state.data, problem: state.problem, reload: () => setRound(last => last + 1) };
}

/** Reads a resource again at a pace, while the tab is visible: for what no event reports. */
export function useReload({ reload }: Pick<Resource<unknown>, 'reload'>, everyMs: number): void {
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && reload(), everyMs);
    return () => clearInterval(timer);
  }, []);
}

export const anyTable = (event: LiveEvent): boolean => event.kind !== 'queue';
export const anyJob = (event: LiveEvent): boolean => event.kind !== 'tables';
export const always = (): boolean => true;
export const never = (): boolean => false;

export function thisTable(id: string | undefined): (event: LiveEvent) => boolean {
  return event => {
    if (id === undefined) return false;
    if (event.kind === 'tables') return event.more || event.ids.has(id);
    return event.kind === 'job' && event.table === id;
  };
}

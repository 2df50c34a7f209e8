// Replays the logs of the tables with most small files, one after another, until the view is left.
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiProblem, api, read, sentence } from '../../api/client';
import type { TableRowView, WhatIfResponse } from '../../api/schema';
import { COMMITS, COST_MODEL, QUERIES_PER_HOUR } from '../table/what-if-model';
import { adviceOf, type Advice } from './ranking';

/** Tables that are replayed: each replay reads up to a thousand commits. */
const TABLES = 10;

/** The decider computes one replay at a time; while it is busy, the same table is tried again. */
const BUSY = 503;
const BUSY_MS = 2_000;

interface Progress {
  readonly found: readonly Advice[];
  readonly failed: readonly { readonly name: string; readonly problem: string }[];
  readonly done: number;
  readonly total: number;
  readonly isRunning: boolean;
  readonly problem: string;
}

const NOTHING: Progress = { found: [], failed: [], done: 0, total: 0, isRunning: false, problem: '' };

export function useAdvice(): Progress & { readonly start: () => void } {
  const [progress, setProgress] = useState<Progress>(NOTHING);
  const current = useRef<AbortController | null>(null);
  useEffect(() => () => current.current?.abort(), []);

  const start = () => {
    current.current?.abort();
    const ended = new AbortController();
    current.current = ended;
    const show = (change: (last: Progress) => Partial<Progress>) => {
      if (!ended.signal.aborted) setProgress(last => ({ ...last, ...change(last) }));
    };
    setProgress({ ...NOTHING, isRunning: true });
    replayAll(ended.signal, show)
      .catch((failure: unknown) => show(() => ({ problem: sentence(failure) })))
      .finally(() => show(() => ({ isRunning: false })));
  };
  return { ...progress, start };
}

type Show = (change: (last: Progress) => Partial<Progress>) => void;

async function replayAll(signal: AbortSignal, show: Show): Promise<void> {
  const query = { sort: 'small_files', descending: true, limit: TABLES } as const;
  const { rows } = await read(api.GET('/v1/table-rows', { params: { query }, signal }));
  const tables = rows.filter(row => row.version !== null && row.refusal === null);
  show(() => ({ total: tables.length }));
  for (const table of tables) {
    if (signal.aborted) return;
    try {
      const answer = await replay(table, signal);
      show(last => ({ found: [...last.found, adviceOf(table, answer)], done: last.done + 1 }));
    } catch (failure) {
      const failed = { name: table.name, problem: sentence(failure) };
      show(last => ({ failed: [...last.failed, failed], done: last.done + 1 }));
    }
  }
}

async function replay(table: TableRowView, signal: AbortSignal): Promise<WhatIfResponse> {
  for (;;) {
    try {
      const path = { name: table.name };
      const body = {
        ...COST_MODEL,
        properties: {},
        sort_keys: [],
        queries_per_hour: QUERIES_PER_HOUR,
        max_commits: COMMITS,
      };
      return await read(api.POST('/v1/tables/{name}/what-if', { params: { path }, body, signal }));
    } catch (failure) {
      if (signal.aborted || !(failure instanceof ApiProblem) || failure.status !== BUSY) throw failure;
      await new Promise(resolve => setTimeout(resolve, BUSY_MS));
    }
  }
}

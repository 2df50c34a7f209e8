// The rows on the screen: read when they are scrolled to, and again when one of the tables changed.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { api, read, sentence } from '../../api/client';
import { listen } from '../../api/live';
import type { TableCondition, TableRows, TableSort } from '../../api/schema';
import { pagesOf, type Range } from '../../parts/visible-range';
import { PAGE_ROWS, TablePages } from './table-pages';

export interface TableFilter {
  readonly search: string;
  readonly tenant: string;
  readonly group: string;
  readonly condition: TableCondition | '';
  readonly sort: TableSort;
  readonly descending: boolean;
}

interface ShownRows {
  readonly summary: TableRows | undefined;
  readonly pages: TablePages;
  readonly problem: string;
  readonly onRange: (range: Range) => void;
  readonly reload: () => void;
}

/** Shortest time between two reads that events lead to. */
const PAUSE_MS = 1_000;

/** Pause before a page is read again whose figures were not complete. */
const INCOMPLETE_MS = 500;

export function useTableRows(filter: TableFilter): ShownRows {
  const key = JSON.stringify(filter);
  const [summary, setSummary] = useState<TableRows | undefined>();
  const [problem, setProblem] = useState('');
  const [, redraw] = useState(0);
  const range = useRef<Range>({ first: 0, last: 30 });
  const pages = useRef(new TablePages());
  const readPages = useRef<(wanted: readonly number[]) => void>(() => undefined);

  useEffect(() => {
    const ended = new AbortController();
    const shown = new TablePages();
    const requested = new Set<number>();
    let isFirst = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let readAt = 0;
    let isLast = true;

    const show = (found: TableRows) => {
      if (isFirst) pages.current = shown;
      isFirst = false;
      shown.put(found);
      setSummary(found);
      setProblem('');
      redraw(last => last + 1);
      if (!found.complete) later(INCOMPLETE_MS);
    };
    const readPage = (page: number) => {
      if (requested.has(page)) return;
      requested.add(page);
      read(api.GET('/v1/table-rows', { params: { query: queryOf(filter, page) }, signal: ended.signal }))
        .then(show)
        .catch((failure: unknown) => {
          if (!ended.signal.aborted) setProblem(sentence(failure));
        })
        .finally(() => requested.delete(page));
    };
    const refresh = () => {
      timer = undefined;
      readAt = performance.now();
      const visible = pagesOf(range.current, PAGE_ROWS);
      shown.keepOnly(visible);
      for (const page of visible.length > 0 ? visible : [0]) readPage(page);
      if (isLast) return;
      // The decider counts jobs twice a second: the counts of this answer may be from before the event.
      isLast = true;
      later(PAUSE_MS);
    };
    const later = (pauseMs: number) => {
      timer ??= setTimeout(refresh, pauseMs);
    };
    readPages.current = wanted => {
      for (const page of wanted) if (!shown.has(page)) readPage(page);
    };
    readPage(pagesOf(range.current, PAGE_ROWS)[0] ?? 0);
    const silence = listen(() => {
      isLast = false;
      later(Math.max(0, PAUSE_MS - (performance.now() - readAt)));
    });
    return () => {
      silence();
      clearTimeout(timer);
      ended.abort();
    };
  }, [key]);

  const onRange = useCallback((next: Range) => {
    range.current = next;
    readPages.current(pagesOf(next, PAGE_ROWS));
  }, []);
  const reload = useCallback(() => {
    const visible = pagesOf(range.current, PAGE_ROWS);
    pages.current.keepOnly([]);
    readPages.current(visible.length > 0 ? visible : [0]);
  }, []);
  return { summary, pages: pages.current, problem, onRange, reload };
}

function queryOf(filter: TableFilter, page: number) {
  return {
    search: filter.search,
    tenant: filter.tenant,
    group: filter.group,
    sort: filter.sort,
    descending: filter.descending,
    offset: page * PAGE_ROWS,
    limit: PAGE_ROWS,
    ...(filter.condition === '' ? {} : { condition: filter.condition }),
  };
}

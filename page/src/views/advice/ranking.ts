// Which advice comes first: what a change saves, and whether a person has dismissed exactly that change.
import type { TableRowView, WhatIfResponse } from '../../api/schema';

export interface Advice {
  readonly table: TableRowView;
  readonly answer: WhatIfResponse;
  /** Core-seconds that the change would have saved over the replayed commits. */
  readonly savedS: number;
  /** The properties that the change sets. */
  readonly change: Readonly<Record<string, string>>;
}

export function adviceOf(table: TableRowView, answer: WhatIfResponse): Advice {
  const { recommendation } = answer;
  const savedS = Math.max(0, recommendation.current_cost_s - recommendation.cost_s);
  return { table, answer, savedS, change: recommendation.is_change ? recommendation.properties : {} };
}

/** Those that change something and were not dismissed, the largest saving first. */
export function ranked(all: readonly Advice[], dismissed: ReadonlySet<string>): Advice[] {
  return all
    .filter(one => Object.keys(one.change).length > 0 && !dismissed.has(identity(one)))
    .sort((a, b) => b.savedS - a.savedS || a.table.name.localeCompare(b.table.name));
}

/** A dismissed change comes back when another one is proposed for its table. */
export function identity({ table, change }: Pick<Advice, 'table' | 'change'>): string {
  const entries = Object.entries(change).sort(([a], [b]) => a.localeCompare(b));
  return JSON.stringify([table.id, entries]);
}

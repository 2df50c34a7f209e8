// Which rows of a long list are on the screen, with some more around them so that scrolling shows no gap.

export interface Range {
  readonly first: number;
  /** One more than the last row. */
  readonly last: number;
}

/** Rows drawn beyond each edge of the screen. */
const MARGIN = 12;

export function visibleRange(scrollTop: number, height: number, rowHeight: number, total: number): Range {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - MARGIN);
  const last = Math.min(total, Math.ceil((scrollTop + height) / rowHeight) + MARGIN);
  return { first: Math.min(first, last), last };
}

/** Numbers of the pages of `size` rows that a range touches. */
export function pagesOf(range: Range, size: number): number[] {
  const pages: number[] = [];
  if (range.last <= range.first) return pages;
  for (let page = Math.floor(range.first / size); page <= Math.floor((range.last - 1) / size); page += 1) {
    pages.push(page);
  }
  return pages;
}

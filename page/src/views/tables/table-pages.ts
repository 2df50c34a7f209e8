// Rows of a long list that were read, page by page; rows that were not read yet are simply absent.
import type { TableRowView, TableRows } from '../../api/schema';

/** Rows of one request: four screens, 40 kB. */
export const PAGE_ROWS = 100;

/** Pages kept: some screens in each direction; others are read again when they are scrolled to. */
const KEPT_PAGES = 30;

export class TablePages {
  private readonly pages = new Map<number, readonly TableRowView[]>();

  row(index: number): TableRowView | undefined {
    return this.pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS];
  }

  has(page: number): boolean {
    return this.pages.has(page);
  }

  put(found: TableRows): void {
    const page = Math.floor(found.offset / PAGE_ROWS);
    this.pages.delete(page);
    this.pages.set(page, found.rows);
    while (this.pages.size > KEPT_PAGES) {
      const oldest = this.pages.keys().next();
      if (oldest.done === true) return;
      this.pages.delete(oldest.value);
    }
  }

  /** Drops all pages but these, which are on the screen and are read again. */
  keepOnly(pages: readonly number[]): void {
    for (const page of [...this.pages.keys()]) if (!pages.includes(page)) this.pages.delete(page);
  }
}

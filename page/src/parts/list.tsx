// A list as a table: a column has a head, and shows one value of each row.
import { type ComponentChildren, Fragment } from 'preact';

export interface Column<T> {
  readonly head: ComponentChildren;
  /** Of the head and of its values: `right` for numbers, `wide-only` for what a narrow screen leaves out. */
  readonly place?: string;
  /** Of its values alone: `number` or `text`. */
  readonly kind?: string;
  /** Whether its values name their rows. */
  readonly isName?: boolean;
  readonly title?: (row: T) => string;
  readonly show: (row: T, index: number) => ComponentChildren;
}

/** The head of a column of buttons, for those who do not see them. */
export const ACTIONS = <span class="hidden">Actions</span>;

interface ListProps<T> {
  readonly label: string;
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  readonly columns: readonly Column<T>[];
  readonly region?: string;
  readonly rowClass?: (row: T) => string;
  /** What an opened row shows below it; null where it is not open. */
  readonly below?: (row: T) => ComponentChildren;
}

export function List<T>({ label, rows, keyOf, columns, region = '', rowClass, below }: ListProps<T>) {
  return (
    <div class={`scroll ${region}`} tabIndex={0} role="region" aria-label={label}>
      <table class="list">
        <thead>
          <tr>
            {columns.map((column, at) => (
              <th key={at} scope="col" class={column.place}>
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => {
            const more = below?.(row) ?? null;
            return (
              <Fragment key={keyOf(row)}>
                <tr class={rowClass?.(row)}>
                  {columns.map((column, at) => {
                    const shown = {
                      class: `${column.place ?? ''} ${column.kind ?? ''}`,
                      title: column.title?.(row),
                      children: column.show(row, index),
                    };
                    return column.isName ? <th key={at} scope="row" {...shown} /> : <td key={at} {...shown} />;
                  })}
                </tr>
                {more !== null && (
                  <tr>
                    <td colSpan={columns.length}>{more}</td>
                  </tr>
                )}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

// Files per size level as bars, one row per level; a second series shows the layout that a rewrite leads to.
import { bytes, exact } from '../format/numbers';
import type { LayoutView, SizeLevelView } from '../api/schema';

const FULL = 6;

export interface Bar {
  readonly label: string;
  readonly title: string;
  readonly value: number;
  readonly other?: number | undefined;
}

/** The size range of a level: `< 32 KiB`, `32 KiB – 256 KiB`, `≥ 96 MiB`. */
export function levelLabel(level: Pick<SizeLevelView, 'level' | 'from_bytes' | 'below_bytes'>): string {
  if (level.below_bytes === null) return `≥ ${bytes(level.from_bytes)}`;
  if (level.from_bytes === 0) return `< ${bytes(level.below_bytes)}`;
  return `${bytes(level.from_bytes)} – ${bytes(level.below_bytes)}`;
}

export function barsOf(layout: LayoutView, after?: LayoutView): Bar[] {
  return layout.levels.map((level, index) => ({
    label: levelLabel(level),
    title: level.level === FULL ? 'full' : `level ${level.level}`,
    value: level.files,
    other: after?.levels[index]?.files,
  }));
}

export function Histogram(props: { bars: readonly Bar[]; now: string; after?: string }) {
  const most = Math.max(1, ...props.bars.map(bar => Math.max(bar.value, bar.other ?? 0)));
  return (
    <figure class="histogram">
      {props.after !== undefined && (
        <figcaption class="legend">
          <span class="key series-now">{props.now}</span>
          <span class="key series-after">{props.after}</span>
        </figcaption>
      )}
      <table>
        <caption class="hidden">Files per size level</caption>
        <thead class="hidden">
          <tr>
            <th scope="col">File size</th>
            <th scope="col">{props.now}</th>
            {props.after !== undefined && <th scope="col">{props.after}</th>}
          </tr>
        </thead>
        <tbody>
          {props.bars.map(bar => (
            <tr key={bar.label}>
              <th scope="row" title={bar.title}>
                {bar.label}
              </th>
              <td>
                <Line value={bar.value} most={most} series="now" />
                {props.after !== undefined && <Line value={bar.other ?? 0} most={most} series="after" />}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}

function Line({ value, most, series }: { value: number; most: number; series: string }) {
  return (
    <span class="line">
      <span class={`line-bar series-${series}`} style={{ width: `${(100 * value) / most}%` }} />
      <span class="number">{exact(value)}</span>
    </span>
  );
}

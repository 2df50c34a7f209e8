// Lines over time, drawn by uPlot; colors come from the style sheet, so that light and dark follow the system.
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { bytes, count } from '../format/numbers';
import { tick } from '../format/times';

interface Series {
  readonly label: string;
  /** Name of the custom property that holds the color. */
  readonly color: string;
  readonly values: readonly (number | null)[];
  /** Drawn as steps: the value holds until the next one. */
  readonly steps?: boolean;
  readonly fill?: boolean;
}

/** Something that happened at a time, drawn as a line with a short text. */
interface ChartMark {
  readonly atS: number;
  readonly text: string;
}

interface ChartProps {
  /** Seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly label: string;
  readonly height?: number;
  readonly format?: (value: number) => string;
  readonly max?: number;
  readonly marks?: readonly ChartMark[];
}

export function TimeChart(props: ChartProps) {
  const element = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const names = props.series.map(one => one.label).join('|');
  const data = drawnData(props);
  const newest = useRef(data);
  newest.current = data;
  const marks = useRef(props.marks ?? []);
  marks.current = props.marks ?? [];

  useEffect(() => {
    const target = element.current;
    if (target === null) return undefined;
    const draw = () => {
      chart.current?.destroy();
      const drawn = new uPlot(options(props, marks, target.clientWidth), newest.current, target);
      drawn.over.addEventListener('mouseleave', () => showNewest(drawn));
      chart.current = drawn;
    };
    draw();
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', draw);
    const resized = new ResizeObserver(() => {
      if (chart.current !== null && chart.current.width !== target.clientWidth) {
        chart.current.setSize({ width: target.clientWidth, height: props.height ?? 200 });
      }
    });
    resized.observe(target);
    return () => {
      resized.disconnect();
      dark.removeEventListener('change', draw);
      chart.current?.destroy();
      chart.current = null;
    };
  }, [names, props.height, props.max]);

  useEffect(() => {
    if (chart.current === null) return;
    chart.current.setData(data);
    if (chart.current.cursor.idx == null) showNewest(chart.current);
  }, [props.times, names]);

  return <div class="chart" ref={element} role="img" aria-label={props.label} />;
}

/** Seconds that a chart shows before its only point; uPlot itself would show years after it. */
const ONE_POINT_S = 60;

function drawnData({ times, series }: ChartProps): uPlot.AlignedData {
  const only = times.length === 1 ? times[0] : undefined;
  const drawn =
    only === undefined
      ? [times, ...series.map(one => one.values)]
      : [[only - ONE_POINT_S, only], ...series.map(one => [null, ...one.values])];
  return drawn as unknown as uPlot.AlignedData;
}

/** Steps between ticks of times, in seconds: ticks are written in whole seconds, so no step is shorter. */
const TIMES = [
  ...[1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map(minutes => 60 * minutes),
  ...[1, 2, 3, 6, 12].map(hours => 3_600 * hours),
  ...[1, 2, 7, 14, 30, 90, 365].map(days => 86_400 * days),
];

/** Steps between ticks of counts, which have no fractions. */
const WHOLE = [1, 2, 5]
  .flatMap(one => Array.from({ length: 10 }, (_, power) => one * 10 ** power))
  .sort((a, b) => a - b);

/** Steps between ticks of bytes, which are written in binary units. */
const BINARY = Array.from({ length: 51 }, (_, power) => 2 ** power);

function options(props: ChartProps, marks: { readonly current: readonly ChartMark[] }, width: number): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => resolved(style.getPropertyValue(name));
  const format = props.format ?? count;
  const axis = {
    stroke: color('--muted'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
    font: '12px system-ui, sans-serif',
  };
  return {
    width,
    height: props.height ?? 200,
    padding: [8, 28, 0, 0],
    cursor: { points: { size: 6 }, drag: { x: false, y: false } },
    legend: { live: true },
    hooks: { ready: [showNewest], draw: [chart => drawMarks(chart, marks.current, color('--muted'))] },
    scales: {
      y: { range: (_chart, _low, high) => [0, props.max ?? Math.max(1, high * 1.08)] },
    },
    axes: [
      {
        ...axis,
        size: 28,
        space: 80,
        incrs: TIMES,
        values: (_chart, ticks, _axis, _space, step) => ticks.map(at => tick(at, step)),
      },
      {
        ...axis,
        size: 58,
        values: (_chart, ticks) => ticks.map(format),
        ...(props.format === undefined ? { incrs: WHOLE } : props.format === bytes ? { incrs: BINARY } : {}),
      },
    ],
    series: [
      { label: 'Time', value: '{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}' },
      ...props.series.map(one => line(one, color, format)),
    ],
  };
}

function line(one: Series, color: (name: string) => string, format: (value: number) => string): uPlot.Series {
  const paths = one.steps === true ? uPlot.paths.stepped?.({ align: 1 }) : undefined;
  return {
    label: one.label,
    stroke: color(one.color),
    width: 1.75,
    points: { show: false },
    value: (_chart, value: number | null) => (value === null ? '–' : format(value)),
    ...(paths === undefined ? {} : { paths }),
    ...(one.fill === true ? { fill: faint(color(one.color)) } : {}),
  };
}

/** Pixels between two texts of marks, below which the later one has none. */
const MARK_ROOM = 14;

function drawMarks(chart: uPlot, marks: readonly ChartMark[], color: string): void {
  const { ctx, bbox } = chart;
  let last = Number.NEGATIVE_INFINITY;
  ctx.save();
  ctx.strokeStyle = color;
  ctx.fillStyle = color;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textBaseline = 'top';
  for (const mark of marks) {
    const x = Math.round(chart.valToPos(mark.atS, 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    if (x - last < MARK_ROOM * devicePixelRatio) continue;
    ctx.fillText(mark.text, x + 3 * devicePixelRatio, bbox.top);
    last = x;
  }
  ctx.restore();
}

/** Keeps the newest values in the legend while the pointer is elsewhere. */
function showNewest(chart: uPlot): void {
  chart.setLegend({ idx: chart.data[0].length - 1 });
}

/** The color of an area below its line. */
function faint(color: string): string {
  return resolved(`color-mix(in srgb, ${color} 14%, transparent)`);
}

/** A color as the canvas understands it: `light-dark()` is resolved by an element of the page. */
function resolved(value: string): string {
  const probe = document.createElement('span');
  probe.style.color = value;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

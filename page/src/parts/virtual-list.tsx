// A list of which only the visible rows exist: a hundred thousand rows scroll like twenty.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { visibleRange, type Range } from './visible-range';

interface VirtualProps {
  readonly total: number;
  readonly rowHeight: number;
  readonly row: (index: number) => ComponentChildren;
  /** Called with the rows that are on the screen whenever they change. */
  readonly onRange: (range: Range) => void;
  readonly label: string;
  readonly columns: number;
  readonly head: ComponentChildren;
}

export function VirtualList(props: VirtualProps) {
  const frame = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<Range>({ first: 0, last: 30 });
  const { total, rowHeight, onRange } = props;

  useEffect(() => {
    const element = frame.current;
    if (element === null) return undefined;
    let pending = 0;
    const measure = () => {
      pending = 0;
      const next = visibleRange(element.scrollTop, element.clientHeight, rowHeight, total);
      setRange(last => (last.first === next.first && last.last === next.last ? last : next));
      onRange(next);
    };
    const request = () => {
      pending ||= requestAnimationFrame(measure);
    };
    element.addEventListener('scroll', request, { passive: true });
    const resized = new ResizeObserver(request);
    resized.observe(element);
    measure();
    return () => {
      element.removeEventListener('scroll', request);
      resized.disconnect();
      cancelAnimationFrame(pending);
    };
  }, [total, rowHeight, onRange]);

  const rows = [];
  for (let index = range.first; index < Math.min(range.last, total); index += 1) rows.push(props.row(index));
  return (
    <div
      class="virtual"
      ref={frame}
      role="table"
      aria-label={props.label}
      aria-rowcount={total + 1}
      aria-colcount={props.columns}
      tabIndex={0}
    >
      {props.head}
      <div role="rowgroup" class="virtual-rows" style={{ height: `${total * rowHeight}px` }}>
        <div class="virtual-window" style={{ transform: `translateY(${range.first * rowHeight}px)` }}>
          {rows}
        </div>
      </div>
    </div>
  );
}

import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

const rowHeight = 28;
/** Drawn above and below what is visible. */
const spare = 10;

/** A list of rows of equal height; only those on the screen are in the document. */
export const Rows = ({
  total,
  row,
}: {
  total: number;
  row: (index: number) => ComponentChildren;
}) => {
  const box = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useSignal(600);
  useEffect(() => {
    if (box.current === null) return undefined;
    const watch = new ResizeObserver(([entry]) => {
      height.value = entry?.contentRect.height ?? height.value;
    });
    watch.observe(box.current);
    return () => watch.disconnect();
  }, [height]);
  const from = Math.max(0, Math.floor(top.value / rowHeight) - spare);
  const to = Math.min(total, Math.ceil((top.value + height.value) / rowHeight) + spare);
  return (
    <div
      class="rows"
      ref={box}
      onScroll={({ currentTarget }) => {
        top.value = currentTarget.scrollTop;
      }}
    >
      <div style={{ height: `${from * rowHeight}px` }} />
      {Array.from({ length: Math.max(0, to - from) }, (_, index) => row(from + index))}
      <div style={{ height: `${Math.max(0, total - to) * rowHeight}px` }} />
    </div>
  );
};

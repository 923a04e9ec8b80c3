import { useComputed } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { TaskHistory } from '../../data/source.ts';
import { createMoments, type Moment } from '../../model/moments.ts';
import { atSeq, slideTo } from '../../shell/router.ts';

/** The transition of a history that is shown. */
export interface Shown {
  readonly all: readonly Moment[];
  readonly index: number;
  readonly moment: Moment | null;
  readonly previous: Moment | null;
  readonly isLatest: boolean;
  /** Null: the latest, also when more follow. */
  readonly choose: (index: number | null) => void;
}

/** `pathAt`: the address of the view at an entry; null: at the latest. */
export const useMoment = (
  { frames }: TaskHistory,
  pathAt: (seq: number | null) => string,
): Shown => {
  const momentsOf = useMemo(createMoments, []);
  const all = useComputed(() => momentsOf(frames.value)).value;
  const wanted = atSeq.value;
  const found = wanted === null ? -1 : all.findLastIndex(({ seq }) => seq <= wanted);
  const isLatest = found === -1 || found === all.length - 1;
  const index = isLatest ? all.length - 1 : found;
  return {
    ...{ all, index, isLatest },
    moment: all[index] ?? null,
    previous: all[index - 1] ?? null,
    choose: (to) =>
      slideTo(pathAt(to === null || to === all.length - 1 ? null : (all[to]?.seq ?? null))),
  };
};

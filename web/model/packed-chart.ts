export interface Exit {
  readonly kind: string;
  readonly event: string;
  readonly guard: string | null;
  readonly to: string;
}

export interface Box {
  /** The path of the state, `started.working`. */
  readonly id: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly exits: readonly Exit[];
}

export interface Line {
  readonly from: string;
  readonly to: string;
  readonly on: readonly Pick<Exit, 'event' | 'guard'>[];
  readonly points: readonly (readonly number[])[];
}

export interface Chart {
  readonly width: number;
  readonly height: number;
  readonly groups: readonly Box[];
  readonly states: readonly Box[];
  readonly lines: readonly Line[];
}

/** Written by scripts/charts/pack-chart.mjs. */
export interface PackedChart {
  readonly size: readonly number[];
  /** How many of the boxes are groups; the others are states. */
  readonly groups: number;
  readonly ids: string;
  readonly places: string;
  /** Of the groups. */
  readonly heights: readonly number[];
  readonly exits: string;
  readonly ends: string;
  readonly on: string;
  readonly points: string;
}

const kinds = ['stays', 'cancel', 'deadline', 'error', 'tracker', 'away'];
const stateHeight = 28;

const numbersIn = (text: string): readonly number[] => text.split(' ').map(Number);
const listOf = (text: string): readonly string[] => text.split(';').filter((each) => each !== '');

const wayIn = (text: string): Pick<Exit, 'event' | 'guard'> => {
  const [event = '', guard = ''] = text.split(',');
  return { event, guard: guard === '' ? null : guard };
};

/** Downwards and sideways in turn. */
const pointsIn = (text: string): readonly (readonly number[])[] => {
  const [x = 0, y = 0, ...steps] = numbersIn(text);
  const at = [x, y];
  const points = [[x, y]];
  for (const [nth, step] of steps.entries()) {
    const axis = (nth + 1) % 2;
    at[axis] = (at[axis] ?? 0) + step;
    if (step !== 0) points.push([...at]);
  }
  return points;
};

export const unpackChart = (packed: PackedChart): Chart => {
  const [width = 0, height = 0] = packed.size;
  const ids = packed.ids.split(',');
  const idAt = (place: string | number | undefined): string => ids[Number(place)] ?? '';
  const places = packed.places.split(',').map(numbersIn);
  const boxes = packed.exits.split('\n').map((exits, nth) => {
    const [x = 0, y = 0, width = 0] = places[nth] ?? [];
    return {
      ...{ id: idAt(nth), x, y, width, height: packed.heights[nth] ?? stateHeight },
      exits: listOf(exits).map((exit) => ({
        ...{ kind: kinds[Number(exit[0])] ?? '', to: idAt(exit.split(',')[2]) },
        ...wayIn(exit.slice(1)),
      })),
    };
  });
  const ends = packed.ends.split(',').map(numbersIn);
  const on = packed.on.split('\n');
  return {
    ...{ width, height, groups: boxes.slice(0, packed.groups), states: boxes.slice(packed.groups) },
    lines: packed.points.split(',').map((points, nth) => ({
      ...{ from: idAt(ends[nth]?.[0]), to: idAt(ends[nth]?.[1]), points: pointsIn(points) },
      on: listOf(on[nth] ?? '').map(wayIn),
    })),
  };
};

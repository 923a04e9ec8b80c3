// Writes a chart as the few texts that web/model/packed-chart.ts reads: small when compressed.

/** The order is that of `kinds` in web/model/packed-chart.ts. */
const kinds = ['stays', 'cancel', 'deadline', 'error', 'tracker', 'away'];

/** Lines go downwards and sideways in turn: each number says how far, from the one before. */
const packPoints = ([[x, y], ...rest]) => {
  const numbers = [x, y];
  let before = [x, y];
  for (const point of rest) {
    const step = [point[0] - before[0], point[1] - before[1]];
    if (step[0] !== 0 && step[1] !== 0)
      throw new Error(`a line is not at right angles at ${point}`);
    const axis = numbers.length % 2 === 0 ? 1 : 0;
    if (step[axis] === 0) numbers.push(0);
    numbers.push(step[0] + step[1]);
    before = point;
  }
  return numbers.join(' ');
};

const packWay = ({ event, guard }) => `${event},${guard ?? ''}`;

/** @param chart of `layOut` */
export const packChart = ({ width, height, groups, states, lines }) => {
  const boxes = [...groups, ...states];
  const place = (id) => boxes.findIndex((box) => box.id === id);
  const packExit = (exit) => `${kinds.indexOf(exit.kind)}${packWay(exit)},${place(exit.to)}`;
  const round = (point) => point.map(Math.round);
  return {
    size: [width, height],
    groups: groups.length,
    ids: boxes.map(({ id }) => id).join(),
    places: boxes.map(({ x, y, width }) => round([x, y, width]).join(' ')).join(),
    heights: groups.map(({ height }) => Math.round(height)),
    exits: boxes.map(({ exits }) => exits.map(packExit).join(';')).join('\n'),
    ends: lines.map(({ from, to }) => `${place(from)} ${place(to)}`).join(),
    on: lines.map(({ on }) => on.map(packWay).join(';')).join('\n'),
    points: lines.map(({ points }) => packPoints(points.map(round))).join(),
  };
};

// Draws a chart as SVG, readable on light and dark pages.

const escaped = (text) =>
  text.replace(
    /[&<>"]/g,
    (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign],
  );

const radius = 6;

/** A path along the points with round corners. */
export const pathAlong = (points) => {
  const towards = ([x, y], [toX, toY], most) => {
    const length = Math.hypot(toX - x, toY - y);
    const part = length === 0 ? 0 : Math.min(most, length / 2) / length;
    return [x + (toX - x) * part, y + (toY - y) * part];
  };
  const [first, ...rest] = points;
  const parts = rest.map((point, nth) => {
    const next = rest[nth + 1];
    if (next === undefined) return `L${point}`;
    const before = towards(point, points[nth], radius);
    return `L${before}Q${point} ${towards(point, next, radius)}`;
  });
  return `M${first}${parts.join('')}`;
};

const style = `
.page{fill:#fff}.group{fill:none;stroke:#cdcdd4}.state{fill:#fff;stroke:#8d8d9a}
.line{fill:none;stroke:#696974;stroke-width:1.2}.head{fill:#696974}
text{font:12px -apple-system,"Segoe UI",Roboto,"Helvetica Neue","Liberation Sans",Arial,sans-serif;fill:#18181c}
.label{font-weight:600}.small{font-size:11px;fill:#696974}
.cancel{stroke:#62626d}.deadline{stroke:#d9922b}.error{stroke:#cf4147}.tracker{stroke:#7a5cc0}.away{stroke:#18181c}
@media(prefers-color-scheme:dark){.page{fill:#0e0e11}.group{stroke:#3c3c46}.state{fill:#16161a;stroke:#6c6c7a}
.line{stroke:#8e8e9b}.head{fill:#8e8e9b}text{fill:#ededf2}.small{fill:#8e8e9b}.away{stroke:#ededf2}}
`;

/** The kinds of exits, in the order of their ticks. */
export const exitKinds = {
  cancel: 'cancel',
  deadline: 'DEADLINE',
  error: 'error',
  tracker: 'tracker.observed',
  away: 'another state',
};

const kindsOf = ({ exits }) =>
  Object.keys(exitKinds).filter((kind) => exits.some((exit) => exit.kind === kind));

const ticks = (state) => {
  const kinds = kindsOf(state);
  const top = state.y + state.height / 2 - (kinds.length - 1) * 3;
  return kinds.map(
    (kind, nth) =>
      `<path class="${kind}" stroke-width="2" d="M${state.x + state.width + 3},${top + nth * 6}h8"/>`,
  );
};

const drawState = (state) => [
  `<rect class="state" x="${state.x}" y="${state.y}" width="${state.width}" height="${state.height}" rx="6"/>`,
  `<text x="${state.x + state.width / 2}" y="${state.y + 18}" text-anchor="middle">${escaped(state.label)}</text>`,
  ...ticks(state),
];

const drawGroup = (group) => [
  `<rect class="group" x="${group.x}" y="${group.y}" width="${group.width}" height="${group.height}" rx="8"/>`,
  `<text class="label" x="${group.x + 12}" y="${group.y + 20}">${escaped(group.label)}</text>`,
];

const titleOf = ({ from, to, on }) =>
  `${from} → ${to}: ${on.map(({ event, guard }) => (guard === null ? event : `${event} [${guard}]`)).join(', ')}`;

const drawLine = (line) =>
  `<path class="line" marker-end="url(#head)" d="${pathAlong(line.points)}"><title>${escaped(titleOf(line))}</title></path>`;

const legend = (chart, y) => {
  const used = Object.keys(exitKinds).filter((kind) =>
    chart.states.some((state) => kindsOf(state).includes(kind)),
  );
  let x = 18;
  return used.flatMap((kind) => {
    const at = x;
    x += 34 + exitKinds[kind].length * 6;
    return [
      `<path class="${kind}" stroke-width="2" d="M${at},${y}h10"/>`,
      `<text class="small" x="${at + 15}" y="${y + 4}">${exitKinds[kind]}</text>`,
    ];
  });
};

/** @param chart of `layOut` */
export const drawSvg = (chart, title) => {
  const height = chart.height + 30;
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" width="${chart.width}" height="${height}" viewBox="0 0 ${chart.width} ${height}" role="img">`,
    `<title>${escaped(title)}</title><style>${style}</style>`,
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="head" d="M0,0.8L8,4L0,7.2z"/></marker></defs>',
    `<rect class="page" width="${chart.width}" height="${height}"/>`,
    ...chart.groups.flatMap(drawGroup),
    ...chart.lines.map(drawLine),
    ...chart.states.flatMap(drawState),
    ...legend(chart, chart.height + 12),
    '</svg>',
  ].join('\n')}\n`;
};

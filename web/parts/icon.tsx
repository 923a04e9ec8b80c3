/** In a box of 16 × 16, drawn with lines. */
const paths = {
  circle: 'M8 2.500a5.500 5.500 0 1 1 0 11a5.500 5.500 0 0 1 0-11',
  clock: 'M8 2.500a5.500 5.500 0 1 1 0 11a5.500 5.500 0 0 1 0-11M8 5v3.200l2 1.300',
  pause: 'M8 2.500a5.500 5.500 0 1 1 0 11a5.500 5.500 0 0 1 0-11M6.500 6v4M9.500 6v4',
  quarter: 'M8 2.500a5.500 5.500 0 1 1 0 11a5.500 5.500 0 0 1 0-11M8 2.500V8h5.500',
  dots: 'M8 2.500a5.500 5.500 0 1 1 0 11a5.500 5.500 0 0 1 0-11M5.600 8h.01M8 8h.01M10.400 8h.01',
  prompt:
    'M3.500 3h9a1 1 0 0 1 1 1v8a1 1 0 0 1-1 1h-9a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1M5 6.200L6.800 8L5 9.800M8.500 10H11',
  question:
    'M3 3h10v8H8.500L6 13.500V11H3zM6.800 6a1.300 1.300 0 1 1 1.700 1.300c-.3.1-.5.300-.5.700M8 9.400h.01',
  shield: 'M8 2l5 1.800V8c0 3-2.200 5-5 6c-2.800-1-5-3-5-6V3.800zM8 5.500v3M8 10.500h.01',
  struck: 'M8 2.500a5.500 5.500 0 1 1 0 11a5.500 5.500 0 0 1 0-11M4.200 11.800l7.600-7.600',
  cross:
    'M8 2.500a5.500 5.500 0 1 1 0 11a5.500 5.500 0 0 1 0-11M6.200 6.200l3.600 3.600M9.800 6.200L6.200 9.800',
  verify: 'M5.800 8.200l1.600 1.600l3-3.200',
  dashed: '',
  check: 'M5.400 8.200l1.800 1.800l3.400-3.800',
  merge:
    'M4.500 5.500v5M4.500 2.500a1.500 1.500 0 1 1 0 3a1.500 1.500 0 0 1 0-3M4.500 10.500a1.500 1.500 0 1 1 0 3a1.500 1.500 0 0 1 0-3M11.500 7.500a1.500 1.500 0 1 1 0 3a1.500 1.500 0 0 1 0-3M4.500 5.800c.5 2 2.500 3.200 5.500 3.200',
  pull: 'M4.500 5.500v5M4.500 2.500a1.500 1.500 0 1 1 0 3a1.500 1.500 0 0 1 0-3M4.500 10.500a1.500 1.500 0 1 1 0 3a1.500 1.500 0 0 1 0-3M11.500 10.500a1.500 1.500 0 1 1 0 3a1.500 1.500 0 0 1 0-3M11.500 10.500V6.500a2 2 0 0 0-2-2H7.500M9 2.800L7.300 4.500L9 6.200',
  search: 'M7 2.500a4.500 4.500 0 1 1 0 9a4.500 4.500 0 0 1 0-9M10.400 10.400L13.500 13.500',
  plus: 'M8 3v10M3 8h10',
  play: 'M5 3.500v9l7-4.500z',
  right: 'M6 3.500L10.500 8L6 12.500',
  left: 'M10 3.500L5.500 8l4.500 4.500',
  inbox: 'M2.500 9l2-6h7l2 6v4h-11zM2.500 9h3l1 2h3l1-2h3',
  board: 'M3 3h2.500v10H3zM6.800 3h2.500v7H6.800zM10.500 3H13v8.500h-2.500z',
  graph:
    'M5.500 7.200l5-2.700M5.500 8.800l5 2.700M4 6.500a1.500 1.500 0 1 1 0 3a1.500 1.500 0 0 1 0-3M12 2.500a1.500 1.500 0 1 1 0 3a1.500 1.500 0 0 1 0-3M12 10.500a1.500 1.500 0 1 1 0 3a1.500 1.500 0 0 1 0-3',
  machine: 'M2.500 6h4v4h-4zM6.500 8h3M11.500 6a2 2 0 1 1 0 4a2 2 0 0 1 0-4',
  pulse: 'M2 8h3l2-4.500l2.500 9L11.500 8H14',
  pencil: 'M3 13l.6-2.800L10.800 3L13 5.200L5.800 12.400z',
} as const;

export type IconName = keyof typeof paths;

const dashed: ReadonlySet<IconName> = new Set(['dashed', 'verify']);

/** Beside a word, which says the same. */
export const Icon = ({ name, tone }: { name: IconName; tone?: string }) => (
  <svg
    class={`icon ${tone === undefined ? '' : `tone-${tone}`}`}
    viewBox="0 0 16 16"
    width="14"
    height="14"
    aria-hidden="true"
  >
    {dashed.has(name) && <circle cx="8" cy="8" r="5.500" stroke-dasharray="2.800 1.900" />}
    {name === 'check' && <circle cx="8" cy="8" r="6" class="filled" />}
    <path d={paths[name]} class={name === 'check' ? 'on-filled' : ''} />
  </svg>
);

/** The mark of the product. */
export const Mark = () => (
  <svg class="mark" viewBox="0 0 16 16" width="18" height="18" aria-hidden="true">
    <rect width="16" height="16" rx="4" class="mark-ground" />
    <path d="M5 8l5.500-3M5 8l5.500 3" class="mark-line" />
    <circle cx="5" cy="8" r="1.800" class="mark-dot" />
    <circle cx="11" cy="4.700" r="1.500" class="mark-ring" />
    <circle cx="11" cy="11.300" r="1.500" class="mark-ring" />
  </svg>
);

import { expect, test } from 'vitest';
import type { Frame } from '../../../web/data/frame.ts';
import { createLog } from '../../../web/model/log.ts';
import {
  createBars,
  marksOf,
  placeOf,
  startsOf,
  stretchesOf,
} from '../../../web/model/timeline.ts';

let seq = 0;
const frame = (seconds: number, type: string, data: object = {}): Frame => {
  seq += 1;
  const timestamp = new Date(seconds * 1_000).toISOString();
  return { type, task_id: 'bd-1', attempt: 1, seq, timestamp, data: { ...data } };
};
const phase = (seconds: number, name: string) => frame(seconds, 'status_update', { phase: name });

const frames = [
  phase(0, 'preparing'),
  phase(2, 'thinking'),
  frame(2, 'api_call_start', { turn: 1 }),
  frame(4, 'text_delta', { text: 'I ' }),
  frame(4, 'text_delta', { text: 'ask.' }),
  frame(6, 'api_call_complete', { turn: 1, ok: true, duration_ms: 4_000, input_tokens: 5 }),
  phase(6, 'awaiting_input'),
  phase(1_000, 'acting'),
  frame(1_000, 'tool_start', { call_id: 'c', tool: 'bash', arguments: '{"command":"npm test"}' }),
  frame(1_001, 'tool_output', { call_id: 'c', chunk: 'not ok' }),
  frame(1_004, 'tool_end', { call_id: 'c', ok: false, duration_ms: 4_000, output: '' }),
];

test('the bars are what an attempt did, and how long it waited', () => {
  const bars = createBars()(frames, 0);

  expect(bars.map(({ lane, from, to, isFailed }) => [lane, from, to, isFailed])).toEqual([
    ['prepare', 0, 2_000, false],
    ['model', 2_000, 6_000, false],
    ['you', 6_000, 1_000_000, false],
    ['tool', 1_000_000, 1_004_000, true],
  ]);
});

test('a bar without an end runs until now', () => {
  expect(createBars()(frames.slice(0, 3), 9_000)).toMatchObject([
    { lane: 'prepare', to: 2_000, isRunning: false },
    { lane: 'model', to: 9_000, isRunning: true },
  ]);
});

test('a long wait is drawn short, and moments keep their order', () => {
  const stretches = stretchesOf(createBars()(frames, 0));

  expect(stretches.filter(({ isCompressed }) => isCompressed)).toMatchObject([
    { from: 6_000, to: 1_000_000 },
  ]);
  const places = [0, 2_000, 6_000, 500_000, 1_000_000, 1_004_000].map((at) =>
    placeOf(at, stretches),
  );
  expect(places).toEqual(places.toSorted((one, other) => one - other));
  expect([places[0], places.at(-1)]).toEqual([0, 1]);
  expect((places[4] ?? 0) - (places[2] ?? 0)).toBeLessThan(0.2);
});

test('a wait is drawn short beside little work too', () => {
  const short = [phase(0, 'waiting_for_slot'), phase(3, 'preparing'), phase(3.2, 'thinking')];
  const [wait, work] = stretchesOf(createBars()(short, 3_200));

  expect([wait?.isCompressed, work?.isCompressed]).toEqual([true, false]);
  expect(wait?.width).toBeLessThan(0.2);
});

test('the log joins text, and gives a call its output and its end', () => {
  expect(createLog(1)(frames)).toMatchObject([
    { kind: 'turn', turn: 1, ms: 4_000, input: 5 },
    { kind: 'text', text: 'I ask.' },
    { kind: 'tool', tool: 'bash', about: 'npm test', output: 'not ok', state: 'failed' },
  ]);
  expect(createLog(2)(frames)).toEqual([]);
});

test('a log that grows, loses its beginning or goes back is as if it were read anew', () => {
  const logOf = createLog(1);
  const lists = [frames.slice(0, 4), frames, frames.slice(2), frames.slice(2, 5), frames];

  for (const list of lists) expect(logOf(list)).toEqual(createLog(1)(list));
});

test('marks are at even distances since the start of the attempt, and none is in a long wait', () => {
  const bars = createBars()(frames, 0);
  const marks = marksOf(startsOf(bars), stretchesOf(bars));

  expect(marks.map(({ at }) => at / 1_000)).toEqual([2, 4, 1_000, 1_002]);
  expect(marks.every(({ at, after }) => at === after)).toBe(true);
});

test('a month of work has few marks, and no work has none', () => {
  const month = [
    phase(0, 'preparing'),
    phase(1, 'thinking'),
    frame(1, 'tool_start', { call_id: 'long', tool: 'bash' }),
    frame(2_592_000, 'tool_end', { call_id: 'long', ok: true }),
  ];
  const bars = createBars()(month, 0);

  expect(marksOf(startsOf(bars), stretchesOf(bars))).toHaveLength(29);
  expect(marksOf([], [])).toEqual([]);
});

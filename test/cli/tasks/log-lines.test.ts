import { expect, test } from 'vitest';
import { terminalText } from '../../../src/cli/output/styled.ts';
import { timeText } from '../../../src/cli/output/times.ts';
import { createLogLines, type LogLines, runLine } from '../../../src/cli/tasks/logs.ts';

const at = '2026-01-15T09:30:05.000Z';
const now = Date.parse(at);
const frame = (type: string, data: object, timestamp = at) => ({
  ...{ type, task_id: 'bd-a1', attempt: 1, seq: 1, timestamp },
  data: { ...data },
});
const shown = (lines: LogLines, each: ReturnType<typeof frame>): string | null => {
  const text = lines(each);
  return text === null ? null : terminalText(text, false);
};
const time = timeText(at).slice(11);
const words = 'It fails as the design says, so that I change the sum and run the tests again. ';

test('a terminal has the local time of the day, no id, and lines that fit below the text', () => {
  const lines = createLogLines(false, 60, now);

  const said = shown(lines, frame('text_delta', { text: words })) ?? '';
  const asked = shown(lines, frame('input_required', { question: words })) ?? '';

  expect(said).toBe(
    `${time}   It fails as the design says, so that I change the\n${' '.repeat(11)}sum and run the tests again.`,
  );
  expect(asked).toContain('agent respond bd-a1 "<answer>"');
  for (const line of `${said}\n${asked}`.split('\n')) expect(line.length).toBeLessThanOrEqual(60);
});

test('output is not broken, a longer text is below the time', () => {
  const line = 'x '.repeat(60).trim();
  const output = `${line}\n${line}`;
  const shownOutput = `    ${line}\n    ${line}`;
  const lines = createLogLines(true, 60, now);

  expect(shown(lines, frame('tool_end', { tool: 'bash', ok: true, output }))).toBe(shownOutput);
  expect(shown(lines, frame('tool_end', { tool: 'bash', ok: false, output }))).toBe(
    `${time}   bash did not succeed:\n${shownOutput}`,
  );
  expect(shown(lines, frame('text_delta', { text: 'one\ntwo' }))).toBe(
    `${time}   one\n${' '.repeat(11)}two`,
  );
});

test('colours stay on the words that have them, over a break', () => {
  const text = createLogLines(false, 40, now)(frame('log', { level: 'warn', message: words }));

  const coloured = terminalText(text ?? '', true).split('\n');

  expect(coloured.length).toBeGreaterThan(2);
  for (const line of coloured.slice(1))
    expect(line.replaceAll('\u001b', '')).toMatch(/^ +\[33m *\S.*\[0m$/);
});

test('the date is said where it changes, and at first when it is not today', () => {
  const days = [0, 2, 2].map((day) => new Date(now + day * 86_400_000).toISOString());
  const lines = createLogLines(false, 80, now);

  const [first, later, same] = days.map((day) =>
    shown(lines, frame('text_delta', { text: 'x' }, day)),
  );

  expect(first).toBe(`${time}   x`);
  expect(later).toBe(`${timeText(days[1] ?? '').slice(0, 10)}\n${time}   x`);
  expect(same).toBe(`${time}   x`);
});

test.each([80, null])('a state that did not change is said once (%s columns)', (width) => {
  const lines = createLogLines(false, width, now);
  const blocked = { status: 'queued', phase: 'waiting_for_dependencies' };

  const all = [blocked, blocked, { status: 'queued', phase: 'waiting_for_slot' }, blocked].map(
    (data) => shown(lines, frame('status_update', data)),
  );

  expect(all.map((each) => each?.replace(/.*queued/, 'queued') ?? null)).toEqual([
    'queued (blocked)',
    null,
    'queued (needs a slot)',
    'queued (blocked)',
  ]);
});

test('a pipe has UTC times and the id', () => {
  const lines = createLogLines(false, null, now);

  expect(shown(lines, frame('text_delta', { text: words }))).toBe(`${at} bd-a1   ${words.trim()}`);
});

test('a run fits its lines to a terminal, and a command stays in one piece', () => {
  const command = `agent config set workspace.setup '{"commands":["npm ci"],"network":true}'`;
  const message = `not in the worktree: node_modules; to install it in each new one: ${command}`;
  const given = frame('log', { level: 'warn', message });

  const [wide, piped] = [80, null].map((width) => terminalText(runLine(given, width) ?? '', false));

  expect(piped).toBe(`bd-a1   ${message}`);
  expect(wide?.split('\n').at(-1)?.trim()).toBe(command);
  for (const line of wide?.split('\n').slice(0, -1) ?? []) expect(line.length).toBeLessThan(80);
});

test('a command that is wider than its column begins at the left edge, in one piece', () => {
  const command = `agent config set workspace.setup '{"commands":["npm ci"],"network":true}'`;
  const message = `not in the worktree: node_modules; to install it in each new one: ${command}; then run it again, please`;

  const text = createLogLines(false, 80, now)(frame('log', { level: 'warn', message }));

  const lines = terminalText(text ?? '', false).split('\n');
  expect(lines.find((line) => line.includes('config set'))).toBe(`${command};`);
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
});

test('the one line of a call that did not succeed fits the terminal', () => {
  const ended = frame('tool_end', { tool: 'bash', ok: false, output: `${words}${words}` });

  const lines = terminalText(runLine(ended, 60) ?? '', false).split('\n');

  expect(lines[0]).toMatch(/^bd-a1 {3}bash did not succeed: It fails as/);
  expect(lines.length).toBeGreaterThan(2);
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(60);
});

test.each(['input_required', 'approval_required'])(
  'a run that takes the answer to %s itself names no command for it',
  (type) => {
    const asks = frame(type, { question: 'red?', calls: [{ tool: 'bash', arguments: 'ls' }] });

    const [here, elsewhere] = [true, false].map((asksHere) =>
      terminalText(runLine(asks, 80, asksHere) ?? '', false),
    );

    expect(here).toMatch(/^bd-a1 (asks: red\?|wants to call bash ls)$/);
    expect(elsewhere).toContain('answer with: agent respond bd-a1');
  },
);

import { expect, test } from 'vitest';
import { renderFrame } from '../../../src/cli/output/render/render-frame.ts';
import { terminalText } from '../../../src/cli/output/styled.ts';

const shown = (type: string, data: object, isFull = false, colour = false): string | null => {
  const frame = {
    type,
    task_id: 'bd-a1',
    attempt: 1,
    seq: 1,
    timestamp: '2026-01-15T09:30:00.000Z',
    data: { ...data },
  };
  const text = renderFrame(frame, isFull);
  return text === null ? null : terminalText(text, colour);
};
const manyLines = Array.from({ length: 40 }, (_, n) => `line ${n}`).join('\n');
const diff = 'edited a.js\n--- a/a.js\n+++ b/a.js\n@@ -1,1 +1,1 @@\n-old\n+new';

test('a turn says its number and the limit', () => {
  expect(shown('api_call_start', { turn: 3, max_turns: 50, model: 'm' })).toBe('bd-a1 turn 3/50');
  expect(shown('api_call_start', { turn: 3, model: 'm', purpose: 'compaction' })).toBeNull();
});

test('a command that fails shows the end of its output, not the beginning', () => {
  const text = shown('tool_end', { tool: 'bash', ok: false, output: manyLines }) ?? '';

  expect(text).toContain('line 39');
  expect(text.split('\n')).toHaveLength(7);
});

test('logs --full has the whole output of every call', () => {
  const full = shown('tool_end', { tool: 'bash', ok: true, output: manyLines }, true) ?? '';

  expect(full.split('\n')).toHaveLength(40);
  expect(shown('tool_end', { tool: 'bash', ok: true, output: manyLines })).toBeNull();
});

test('an edit shows its diff in colours', () => {
  expect(shown('tool_end', { tool: 'edit', ok: true, output: diff }, false, true)).toBe(
    '\u001b[36m    @@ -1,1 +1,1 @@\u001b[0m\n\u001b[31m    -old\u001b[0m\n\u001b[32m    +new\u001b[0m',
  );
});

test('a failed check shows its output and how long it took', () => {
  const data = {
    level: 'warn',
    message: 'verify failed: npm test ended with exit code 1',
    exit_code: 1,
    duration_ms: 2_500,
    output: 'not ok 1\n# fail 1',
  };

  expect(shown('log', data)).toBe(
    'bd-a1   verify failed: npm test ended with exit code 1, 2.5 s\n    not ok 1\n    # fail 1',
  );
});

test('no output can colour the terminal or write over a line', () => {
  const hostile = '\u001b[31mred\r\u0007\u202e';

  for (const isFull of [false, true])
    expect(shown('tool_end', { tool: 'bash', ok: false, output: hostile }, isFull)).toBe(
      'bd-a1   bash did not succeed: red',
    );
});

test('a model call that failed says for how long the provider asks to pause', () => {
  const failed = (facts: object) =>
    shown('api_call_complete', {
      ok: false,
      error: { code: 'model_failed', message: 'slow down', facts },
    });

  expect(failed({ retry_after_ms: 42_000 })).toBe(
    'bd-a1   model call failed: slow down; the provider asks for a pause of 42.0 s',
  );
  expect(failed({})).toBe('bd-a1   model call failed: slow down');
});

test('an attempt that goes on after a verify that failed does not prepare again', () => {
  const preparing = { status: 'started', phase: 'preparing' };

  expect(shown('status_update', { ...preparing, progress: 0.05 })).toBe(
    'bd-a1 started (preparing)',
  );
  expect(shown('status_update', { ...preparing, progress: 0.28 })).toBeNull();
});

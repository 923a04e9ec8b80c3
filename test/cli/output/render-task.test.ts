import { expect, test } from 'vitest';
import { renderTask } from '../../../src/cli/output/render/render-task.ts';
import { terminalText } from '../../../src/cli/output/styled.ts';
import { aTask } from './a-task.ts';

const shown = (over: Parameters<typeof aTask>[0]): string =>
  terminalText(renderTask(aTask(over)), false);

test('a failed task shows why, the end of the output, what it used and how to go on', () => {
  const output = Array.from({ length: 40 }, (_, n) => `line ${n}`).join('\n');

  const text = shown({
    status: 'failed',
    phase: 'failed',
    ready: false,
    role: 'engineer',
    attempt: 2,
    started_at: '2026-11-22T11:57:00.000Z',
    completed_at: '2026-11-22T11:59:05.000Z',
    error: { code: 'verify_failed', message: 'npm test failed', facts: { output } },
    usage: {
      input_tokens: 12_345,
      output_tokens: 678,
      cached_tokens: 4_000,
      cache_write_tokens: 1_200,
      model_calls: 3,
      tool_calls: 2,
      turns: 3,
      cost_usd: 0.0421,
    },
  });

  expect(text).toContain('in 2 min 5 s');
  expect(text).toContain('12.3k tokens in (4000 cached, 1200 written to the cache), 678 out');
  expect(text).toContain('$0.0421');
  expect(text).toContain('verify_failed: npm test failed\n             line 20\n');
  expect(text).toContain('line 39');
  expect(text).not.toContain('line 19');
  expect(text).toMatch(/agent retry bd-a1b2 +try again$/);
});

test('a question names an interrupted call once, and a permission the calls that it is about', () => {
  const calls = [{ call_id: 'c', tool: 'bash', arguments: 'make deploy' }];
  const asks = (kind: 'input' | 'approval', question: string): string =>
    shown({ status: 'started', awaiting: { input_id: 'i', kind, question, calls } });

  expect(asks('input', 'The server stopped while this was at work: bash make deploy.')).toMatch(
    /^ {2}asks +The server stopped while this was at work: bash make deploy\.$/m,
  );
  expect(asks('approval', 'May it make these calls?')).toContain(
    'May it make these calls? bash make deploy',
  );
});

test('a task with several attempts shows which one of how many it is, and the time of all', () => {
  const ended = (attempt: number, seconds: number) => ({
    ...{ attempt, role: 'engineer', status: 'failed', ended_at: '2026-11-22T11:59:05.000Z' },
    ...{ seconds, model_calls: 1, tool_calls: 1 },
    ...{ input_tokens: 1, output_tokens: 1, cached_tokens: 0 },
  });
  const over = { status: 'failed', phase: 'failed', role: 'engineer', attempt: 2 } as const;

  const text = shown({ ...over, max_attempts: 3, attempts: [ended(1, 61), ended(2, 9)] });

  expect(text).toContain('engineer, attempt 2 of 3\n');
  expect(text).toMatch(/^ {2}time +1 min 10 s in 2 attempts$/m);
  expect(shown({ ...over, attempt: 1, max_attempts: 1 })).toContain('engineer, attempt 1\n');
});

test.each([
  [{ gave_up: true }, 'it gave up'],
  [{ no_result: true }, 'it gave up'],
  [{}, 'model_failed: it gave up'],
])('with the facts %j a failure is not put down to the model: %s', (facts, text) => {
  const error = { code: 'model_failed', message: 'it gave up', facts };

  expect(shown({ status: 'failed', phase: 'failed', error })).toMatch(
    new RegExp(`^ {2}error +${text}$`, 'm'),
  );
});

test('a task that was closed by hand after a failed attempt has no time of work, and says why', () => {
  const over = { status: 'complete', phase: 'complete', ready: false, role: 'engineer' } as const;
  const times = {
    started_at: '2026-11-22T11:57:00.000Z',
    completed_at: '2026-11-22T11:59:05.000Z',
  };

  const byHand = shown({ ...over, attempt: 1, ...times, close_reason: 'done in the office' });
  const byAgent = shown({ ...over, attempt: 1, ...times, result: '' });

  expect(byHand).toMatch(/^ {2}closed +2026\S+ \S+ by hand$/m);
  expect(byHand).toMatch(/^ {2}reason +done in the office$/m);
  expect(byAgent).toMatch(/^ {2}completed +2026\S+ \S+ in 2 min 5 s$/m);
});

const work = { branch: 'agent/bd-a1b2/1', commit: 'c', files: 1, insertions: 1, deletions: 0 };

test('work that will conflict is named with its files, also while an agent is at it', () => {
  const { files, insertions, deletions } = work;
  const paths = ['src/a.js', 'src/b.js', 'src/c.js', 'src/d.js'];
  const text = shown({
    ...{ status: 'started', phase: 'thinking', attempt: 1 },
    work: { files, insertions, deletions, conflicts_with: [{ task_id: 'bd-7', paths }] },
  });

  expect(text).toMatch(/^ {2}changes +1 file \+1 -0 so far$/m);
  expect(text).toMatch(
    /^ {2}conflict +will conflict with bd-7 in src\/a.js, src\/b.js, src\/c.js and 1 more$/m,
  );
});

test('a refused merge says why, with the end of the output and the files', () => {
  const over = { status: 'complete', phase: 'complete', attempt: 1 };
  const output = Array.from({ length: 40 }, (_, at) => `line ${at + 1}`).join('\n');
  const refused = { state: 'refused', message: 'it fails together with bd-7 (landed)' } as const;

  const red = shown({ ...over, work: { ...work, merge: { ...refused, command: 'x', output } } });
  const conflict = shown({ ...over, work: { ...work, merge: { ...refused, paths: ['a', 'b'] } } });

  expect(red).toMatch(
    /^ {2}merge +refused: it fails together with bd-7 \(landed\)\n +line 33\n[\s\S]*\n +line 40\n/m,
  );
  expect(conflict).toMatch(/^ {2}merge +refused: it fails .*\n +a, b\n/m);
});

test('work that changed nothing, or is merged, is not to be merged', () => {
  const over = { status: 'complete', phase: 'complete', attempt: 1 };

  expect(shown(over)).not.toContain('agent merge');
  expect(shown({ ...over, work: { ...work, merged_at: '2026-11-22T12:00:00.000Z' } })).toMatch(
    /1 file \+1 -0 on agent\/bd-a1b2\/1, merged 2026[\s\S]*agent diff bd-a1b2 +see the changes\n +agent undo bd-a1b2 +take it back$/,
  );
});

test.each([
  [{}, 'agent engineer bd-a1b2'],
  [{ role: 'tester' as const }, 'agent tester bd-a1b2'],
  [{ ready: false, phase: 'waiting_for_dependencies' }, 'agent explain bd-a1b2'],
  [{ status: 'started', phase: 'thinking', attempt: 1 }, 'agent logs -f bd-a1b2'],
  [{ status: 'complete', phase: 'complete', attempt: 1, work }, 'agent merge bd-a1b2'],
  [{ status: 'cancelled', phase: 'cancelled', attempt: 1 }, 'agent retry bd-a1b2'],
])('%j names the next command', (over, command) => {
  expect(shown(over)).toContain(command);
});

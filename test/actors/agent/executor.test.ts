import { execa } from 'execa';
import { describe, expect, test } from 'vitest';
import { call, createToolRunner, finish } from './tool-runner.ts';

describe('the tools of a role', () => {
  test('are shown to the model with the JSON Schema of their arguments', async () => {
    const { specs } = await createToolRunner('reviewer');

    expect(specs.map(({ name }) => name)).toEqual([
      'read',
      'bash',
      'grep',
      'find',
      'ask',
      'finish',
    ]);
    expect(specs[0]?.parameters).toEqual({
      type: 'object',
      properties: {
        path: { type: 'string', minLength: 1, description: expect.any(String) },
        offset: expect.objectContaining({ type: 'integer', minimum: 1, default: 1 }),
        limit: expect.objectContaining({ type: 'integer', minimum: 1, default: 2_000 }),
      },
      required: ['path'],
      additionalProperties: false,
    });
  });

  test('are the same bytes each time', async () => {
    const [one, other] = [await createToolRunner(), await createToolRunner()];

    expect(JSON.stringify(one.specs)).toBe(JSON.stringify(other.specs));
  });

  test('are the only ones that run', async () => {
    const { run, files } = await createToolRunner('reviewer');

    const results = await run([
      call('1', 'write', { path: 'a', content: 'x' }),
      call('2', 'edit', { path: 'a', edits: [{ old_text: 'a', new_text: 'b' }] }),
      call('3', 'launch', {}),
    ]);

    const tools = 'your tools are: read, bash, grep, find, ask, finish';
    expect(results.map(({ ok, text }) => ({ ok, text }))).toEqual([
      { ok: false, text: `your role may not use write; ${tools}` },
      { ok: false, text: `your role may not use edit; ${tools}` },
      { ok: false, text: `there is no tool launch; ${tools}` },
    ]);
    expect(await files()).toEqual([]);
  });
});

describe('arguments', () => {
  test.each<[string, unknown, RegExp]>([
    ['that are no JSON', '{"path": "a', /^the arguments of edit are not valid JSON: /],
    [
      'that are no object',
      '[]',
      /^the arguments of edit are not valid: must be of the type object/,
    ],
    [
      'of another program',
      '{"path": "a", "old_string": "x", "new_string": "y"}',
      /^the arguments of edit are not valid: edits: is missing; takes no old_string, new_string/,
    ],
    ['that are missing', '', /path: .*; edits: /],
    [
      'of a wrong type',
      { path: 'a', edits: [{ old_text: 'a', new_text: 7 }] },
      /edits\.0\.new_text: must be of the type string/,
    ],
    [
      'that nobody asked for',
      { path: 'a', edits: [{ old_text: 'a', new_text: '' }], all: true },
      /takes no all/,
    ],
  ])('%s are refused, with the place', async (_, args, message) => {
    const { run } = await createToolRunner();

    expect(await run([call('1', 'edit', args)])).toEqual([
      {
        callId: '1',
        tool: 'edit',
        ok: false,
        text: expect.stringMatching(message),
        durationMs: expect.any(Number),
        finish: null,
        question: null,
        malformed: true,
      },
    ]);
  });

  test('that are null count as left out', async () => {
    const { run, put } = await createToolRunner();
    await put('a', 'text');

    expect(await run([call('1', 'read', { path: 'a', offset: null, limit: null })])).toMatchObject([
      { ok: true, text: 'text' },
    ]);
  });
});

describe('the calls of an answer', () => {
  test('run in order, so that a later call sees the effects of an earlier one', async () => {
    const { run } = await createToolRunner();

    const results = await run([
      call('a', 'write', { path: 'f', content: 'one' }),
      call('b', 'read', { path: 'f' }),
      call('c', 'find', { pattern: 'f' }),
      call('d', 'edit', { path: 'f', edits: [{ old_text: 'one', new_text: 'two' }] }),
      call('e', 'read', { path: 'f' }),
      call('f', 'bash', { command: 'cat f' }),
    ]);

    expect(results.map(({ callId, ok, text }) => [callId, ok, text.split('\n').at(0)])).toEqual([
      ['a', true, 'created f (3 bytes)'],
      ['b', true, 'one'],
      ['c', true, 'f'],
      ['d', true, 'edited f'],
      ['e', true, 'two'],
      ['f', true, 'two'],
    ]);
  });

  test('run at once when they only read', async () => {
    const { run, observed, put } = await createToolRunner();
    await put('a', 'x');

    await run([
      call('1', 'grep', { pattern: 'x' }),
      call('2', 'read', { path: 'a' }),
      call('3', 'find', { pattern: '*' }),
    ]);

    expect(observed.slice(0, 3)).toEqual(['start 1', 'start 2', 'start 3']);
  });

  test('run one by one when they do more', async () => {
    const { run, observed } = await createToolRunner();

    await run([
      call('1', 'bash', { command: 'echo x' }),
      call('2', 'write', { path: 'a', content: '' }),
    ]);

    expect(observed).toEqual(['start 1', 'output 1 x', 'end 1 true', 'start 2', 'end 2 true']);
  });

  test('have exactly one result for every id', async () => {
    const { run, files } = await createToolRunner();

    const results = await run([
      call('1', 'write', { path: 'a', content: '' }),
      call('1', 'write', { path: 'b', content: '' }),
      call('2', 'nothing', {}),
    ]);

    expect(results.map(({ callId }) => callId)).toEqual(['1', '2']);
    expect(await files()).toEqual(['a']);
  });

  test('end with finish: what follows is not executed', async () => {
    const { run, files } = await createToolRunner();

    const results = await run([
      call('1', 'finish', { status: 'perhaps', summary: 'x' }),
      call('2', 'write', { path: 'a', content: '' }),
      finish('3'),
      call('4', 'write', { path: 'b', content: '' }),
      finish('5'),
    ]);

    expect(results.map(({ ok, finish }) => [ok, finish])).toEqual([
      [false, null],
      [true, null],
      [true, { status: 'done', summary: 'all done', artifacts: [], answers: [] }],
      [false, null],
      [false, null],
    ]);
    expect(results[3]?.text).toBe('not executed: an earlier call has finished the task');
    expect(await files()).toEqual(['a']);
  });

  test('stop at an abort', async () => {
    const { run, files, abort } = await createToolRunner();
    const running = run([
      call('1', 'bash', { command: 'sleep 300' }),
      call('2', 'write', { path: 'a', content: '' }),
      finish('3'),
    ]);

    abort.abort();

    expect(
      (await running).map(({ ok, text, finish }) => [ok, text.includes('cancelled'), finish]),
    ).toEqual([
      [false, true, null],
      [false, true, null],
      [false, true, null],
    ]);
    expect(await files()).toEqual([]);
  });

  test('answer at most 16 KiB each', async () => {
    const { run } = await createToolRunner();
    const name = 'n'.repeat(30_000);

    const [unknown, missing] = await run([call('1', name, {}), call('2', 'read', { path: name })]);

    expect(Buffer.byteLength(unknown?.text ?? '')).toBeLessThanOrEqual(16_384);
    expect(Buffer.byteLength(missing?.text ?? '')).toBeLessThanOrEqual(16_384);
  });

  test('carry no NUL bytes', async () => {
    const { run, observed } = await createToolRunner();

    const [result] = await run([call('1', 'bash', { command: "printf 'a\\000b'" })]);

    expect(result?.text).toBe('a\uFFFDb\n[exit code 0]');
    expect(observed).toContain('output 1 a\uFFFDb');
  });

  test('read many FIFOs at once without a hang', async () => {
    const { run, root } = await createToolRunner();
    const names = Array.from({ length: 12 }, (_, index) => `fifo${index}`);
    await execa('mkfifo', names, { cwd: root });

    const results = await run(names.map((path) => call(path, 'read', { path })));

    expect(results.map(({ callId, ok }) => [callId, ok])).toEqual(
      names.map((name) => [name, false]),
    );
  });
});

import { describe, expect, test } from 'vitest';
import { createExecutor } from '../../../src/actors/agent/executor.ts';
import { call, createToolRunner, finish } from './tool-runner.ts';
import { createWorkbench } from './workbench.ts';

describe('observers', () => {
  test('are notified of refused calls too, one start and one end each', async () => {
    const { run, observed } = await createToolRunner();

    await run([call('1', 'nothing', {}), finish('2'), call('3', 'read', { path: 'a' })]);

    expect(observed).toEqual([
      'start 1',
      'end 1 false',
      'start 2',
      'end 2 true',
      'start 3',
      'end 3 false',
    ]);
  });

  test('that throw at the start of a call prevent the call, and nothing throws', async () => {
    const { context, files } = await createWorkbench();
    const fail = () => {
      throw new Error('the journal is full');
    };
    const { run } = createExecutor({
      tools: ['write'],
      context: () => context,
      observe: { start: fail, output: fail, end: fail },
    });

    const results = await run([call('1', 'write', { path: 'a', content: '' })]);

    expect(results).toMatchObject([{ ok: false, text: 'write failed: the journal is full' }]);
    expect(await files()).toEqual([]);
  });

  test('that throw on output do not disturb the call', async () => {
    const { context } = await createWorkbench();
    const fail = () => {
      throw new Error('the journal is full');
    };
    const { run } = createExecutor({
      tools: ['bash'],
      context: () => context,
      observe: { start: () => undefined, output: fail, end: fail },
      now: () => 5,
    });

    expect(await run([call('1', 'bash', { command: 'echo x' })])).toEqual([
      {
        callId: '1',
        tool: 'bash',
        ok: true,
        text: 'x\n[exit code 0]',
        durationMs: 0,
        finish: null,
        question: null,
        malformed: false,
      },
    ]);
  });
});

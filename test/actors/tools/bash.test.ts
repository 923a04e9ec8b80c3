import { describe, expect, test, vi } from 'vitest';
import { childEnvironment } from '../../../src/actors/process/run-command.ts';
import { bashTool } from '../../../src/actors/tools/bash.ts';
import { createWorkbench } from '../agent/workbench.ts';

const bash = (command: string, timeout_seconds = 20) => ({ command, timeout_seconds });

describe('bash', () => {
  test('runs in the workspace root, and returns output and exit code', async () => {
    const { root, context, emitted } = await createWorkbench();

    expect(await bashTool.run(bash('pwd'), context)).toEqual({
      ok: true,
      text: `${root}\n[exit code 0]`,
    });
    expect(emitted).toEqual([`${root}\n`]);
  });

  test('a failure is a result', async () => {
    const { context } = await createWorkbench();

    expect(await bashTool.run(bash('exit 7'), context)).toEqual({
      ok: false,
      text: '(no output)\n[exit code 7]',
    });
    expect(await bashTool.run(bash('a\0b'), context)).toMatchObject({ ok: false });
  });

  test('a timeout is a result with the output so far', { tags: ['slow'] }, async () => {
    const { context } = await createWorkbench();

    expect(await bashTool.run(bash('echo begun; sleep 300', 1), context)).toEqual({
      ok: false,
      text: 'begun\n[timed out after 1 s; all its processes were ended]',
    });
  });

  test('an abort ends the command', async () => {
    const { context, abort } = await createWorkbench();

    const running = bashTool.run(bash('echo begun; sleep 300'), {
      ...context,
      emit: () => abort.abort(),
    });

    expect(await running).toEqual({
      ok: false,
      text: 'begun\n[cancelled; all its processes were ended]',
    });
  });

  test('says that it ended background processes', async () => {
    const { context } = await createWorkbench();

    expect(await bashTool.run(bash('sleep 300 &'), context)).toEqual({
      ok: true,
      text: '(no output)\n[exit code 0; processes that it left in the background were ended]',
    });
  });

  test('a command can open its outputs by name', async () => {
    const { context } = await createWorkbench();
    const command =
      'echo one > /dev/stdout; echo two > /dev/stderr; echo three | tee /dev/stderr | wc -l; echo four >> /proc/self/fd/2';

    const { ok, text } = await bashTool.run(bash(command), context);

    expect(ok).toBe(true);
    expect(text.split('\n').sort()).toEqual(['1', '[exit code 0]', 'four', 'one', 'three', 'two']);
  });

  test('the whole of a long output is in a file that later commands can read', async () => {
    const { context } = await createWorkbench();

    const { text } = await bashTool.run({ command: 'seq 1 9000', timeout_seconds: 5 }, context);
    const path = /\[the whole output is in (.*); commands can read it\]/.exec(text)?.[1] ?? '';
    const later = await bashTool.run(
      { command: `grep -n '^4567$' ${path}; wc -l < ${path}`, timeout_seconds: 5 },
      context,
    );

    expect(text).not.toContain('\n4567\n');
    expect(later.text).toBe('4567:4567\n9000\n[exit code 0]');
  });

  test('long output keeps head and tail in 16 KiB and streams at most 64 KiB', async () => {
    const { context, emitted } = await createWorkbench();

    const { ok, text } = await bashTool.run(
      bash('echo first; yes | head -c 1000000; echo last'),
      context,
    );

    expect(ok).toBe(true);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(16_384);
    expect(text).toMatch(
      /^first\ny\n.*bytes left out here.*y\nlast\n\[the whole output is in .*\]\n\[exit code 0\]$/s,
    );
    expect(emitted.join('').length).toBeLessThan(64 * 1024 + 64);
    expect(emitted.at(-1)).toMatch(/further output is not streamed/);
  });

  test("sees no secret of the server's environment", async () => {
    vi.stubEnv('OPENAI_API_KEY', 'canary');
    vi.stubEnv('AGENT_SERVER_TOKEN', 'canary');
    const { context } = await createWorkbench();

    const { text } = await bashTool.run(bash('env; cat /proc/self/environ'), {
      ...context,
      env: childEnvironment(process.env),
    });
    vi.unstubAllEnvs();

    expect(text).toContain('PATH=');
    expect(text).not.toContain('canary');
    expect(text).not.toMatch(/^(NODE|VITEST|npm|AGENT)_/m);
  });
});

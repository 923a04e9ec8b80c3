import { chmod, link, readFile, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, onTestFinished, test } from 'vitest';
import { maxFileBytes, readInside, writeInside } from '../../../src/actors/tools/confined-files.ts';
import { isLong } from '../../support/long.ts';
import { notLinux, testUnless } from '../../support/needs.ts';
import { createWorkbench } from '../agent/workbench.ts';

describe('reading', () => {
  test('returns the bytes of a file', async () => {
    const { root, put } = await createWorkbench();
    await put('src/a.ts', 'text');

    expect(await readInside(root, 'src/a.ts')).toEqual({ ok: true, value: Buffer.from('text') });
  });

  test('follows a symlink that stays inside', async () => {
    const { root, put } = await createWorkbench();
    await put('src/a.ts', 'text');
    await symlink('src/a.ts', join(root, 'b.ts'));

    expect(await readInside(root, 'b.ts')).toMatchObject({ ok: true });
  });

  test('refuses a missing file and a folder', async () => {
    const { root, put } = await createWorkbench();
    await put('src/a.ts', '');

    expect(await readInside(root, 'b.ts')).toEqual({ ok: false, text: 'b.ts does not exist' });
    expect(await readInside(root, 'src')).toMatchObject({
      ok: false,
      text: expect.stringMatching(/is a folder/),
    });
    expect(await readInside(root, '.')).toMatchObject({
      ok: false,
      text: expect.stringMatching(/is a folder/),
    });
  });

  test('never waits on FIFOs, even more of them than the thread pool has threads', async () => {
    const { root } = await createWorkbench();
    const names = Array.from({ length: 8 }, (_, index) => `fifo${index}`);
    await execa('mkfifo', names, { cwd: root });

    const results = await Promise.all(names.map((name) => readInside(root, name)));

    expect(results).toEqual(
      names.map((name) => ({ ok: false, text: `${name} is not a regular file` })),
    );
  });

  test('refuses a socket', async () => {
    const { root } = await createWorkbench();
    const server = createServer();
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(join(root, 'socket'), resolve));

    expect(await readInside(root, 'socket')).toEqual({
      ok: false,
      text: 'socket is not a regular file',
    });
  });

  test('refuses a file above the limit without reading it', async () => {
    const { root, put } = await createWorkbench();
    await put('sparse', '');
    await truncate(join(root, 'sparse'), maxFileBytes + 1);

    expect(await readInside(root, 'sparse')).toMatchObject({
      ok: false,
      text: expect.stringMatching(/more than/),
    });
  });
});

describe('writing', () => {
  test('makes missing folders and leaves no other file', async () => {
    const { root, get, files } = await createWorkbench();

    expect(await writeInside(root, 'a/b/c.ts', 'text')).toEqual({
      ok: true,
      value: { created: true, note: '' },
    });

    expect(await get('a/b/c.ts')).toBe('text');
    expect(await files()).toEqual(['a', 'a/b', 'a/b/c.ts']);
  });

  test('keeps the mode of a file', async () => {
    const { root, put, get } = await createWorkbench();
    await put('run.sh', 'old');
    await chmod(join(root, 'run.sh'), 0o751);

    expect(await writeInside(root, 'run.sh', 'new')).toEqual({
      ok: true,
      value: { created: false, note: '' },
    });

    expect(await get('run.sh')).toBe('new');
    expect((await stat(join(root, 'run.sh'))).mode & 0o777).toBe(0o751);
  });

  test('replaces a hard link and leaves the other name alone', async () => {
    const { root, outside } = await createWorkbench();
    await writeFile(join(outside, 'secret'), 'outside');
    await link(join(outside, 'secret'), join(root, 'linked'));

    await writeInside(root, 'linked', 'inside');

    expect(await readFile(join(outside, 'secret'), 'utf8')).toBe('outside');
  });

  test('writes through a symlink that stays inside, and not over a folder', async () => {
    const { root, put, get } = await createWorkbench();
    await put('src/a.ts', 'old');
    await symlink('src/a.ts', join(root, 'b.ts'));

    expect(await writeInside(root, 'b.ts', 'new')).toMatchObject({ ok: true });
    expect(await get('src/a.ts')).toBe('new');
    expect(await writeInside(root, 'src', 'x')).toEqual({
      ok: false,
      text: 'src is not a regular file',
    });
    expect(await writeInside(root, '.', 'x')).toMatchObject({ ok: false });
  });

  test('leaves nothing behind when it is refused', async () => {
    const { root, files } = await createWorkbench();

    for (const path of ['.git/hooks/pre-commit', '../outside/a', '/tmp/agent-escape', 'a\0b'])
      expect(await writeInside(root, path, 'x')).toMatchObject({ ok: false });

    expect(await files()).toEqual([]);
  });
});

/**
 * A process that swaps the folder `swap` for a symlink to `outside` and back, as fast as it can.
 */
const swapper = `
  const fs = require('node:fs');
  const [root, outside] = process.argv.slice(1);
  process.chdir(root);
  process.stdout.write('ready');
  for (;;) {
    try {
      fs.renameSync('swap', 'aside');
      fs.symlinkSync(outside, 'swap');
      fs.unlinkSync('swap');
      fs.renameSync('aside', 'swap');
    } catch {
      // A file that is written meanwhile is in the way of this too.
      try {
        fs.rmSync('swap', { recursive: true, force: true });
        if (fs.existsSync('aside')) fs.renameSync('aside', 'swap');
        else fs.cpSync('spare', 'swap', { recursive: true });
      } catch {}
    }
  }`;

testUnless(notLinux)(
  'a folder that is swapped during the call never leads out',
  { tags: ['slow'], timeout: 180_000 },
  async () => {
    const { root, outside, put } = await createWorkbench();
    await put('swap/file', 'inside');
    await put('spare/file', 'inside');
    await writeFile(join(outside, 'file'), 'outside');
    const racing = execa('node', ['-e', swapper, root, outside], { reject: false, buffer: false });
    await new Promise((resolve) => racing.stdout.once('data', resolve));

    const seen: string[] = [];
    // The long form, as on the acceptance list: 30,000 of each.
    const [rounds, writesAtOnce] = isLong ? [3_750, 8] : [500, 1];
    // On a busy machine the swapper may be stopped in the middle for long.
    for (
      let round = 0;
      round < rounds || (round < 20_000 && !seen.includes('inside'));
      round += 1
    ) {
      const reads = await Promise.all(
        Array.from({ length: 8 }, () => readInside(root, 'swap/file')),
      );
      seen.push(...reads.map((read) => (read.ok ? read.value.toString() : 'refused')));
      const names = Array.from({ length: writesAtOnce }, (_, n) => `swap/new${(round + n) % 9}`);
      await Promise.all(names.map((name) => writeInside(root, name, 'inside')));
    }
    racing.kill('SIGKILL');
    await racing;

    expect(seen).toContain('inside');
    expect(seen).not.toContain('outside');
    expect((await execa('ls', ['-A', outside])).stdout).toBe('file');
  },
);

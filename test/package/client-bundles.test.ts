import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import type { Page } from 'playwright-core';
import { rolldown } from 'rolldown';
import { expect, onTestFinished, test } from 'vitest';
import { readPage } from '../../src/cli/page/read-page.ts';
import { noBrowser, startBrowser } from '../support/browser.ts';
import { testUnless } from '../support/needs.ts';
import { noRegistry, runPackage } from '../support/registry.ts';
import { finish, startServer } from '../support/running.ts';
import { temporaryFolder } from '../support/temporary.ts';

const root = join(import.meta.dirname, '..', '..');

/** The folder of a program that imports the client. */
const program = (): string => {
  const folder = temporaryFolder();
  const name = join(folder, 'node_modules', 'agent-task-server');
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(root, name);
  writeFileSync(
    join(folder, 'main.js'),
    "export { CallError, createClient } from 'agent-task-server/client';\n",
  );
  return folder;
};

const bundle = async (format: 'esm' | 'iife'): Promise<string> => {
  const cwd = program();
  const built = await rolldown({
    ...{ cwd, input: 'main.js', platform: 'browser' },
    onLog: (_, { message }) => {
      throw new Error(message);
    },
  });
  const { output } = await built.generate({ format, name: 'agentClient', minify: true });
  await built.close();
  expect(output).toHaveLength(1);
  return output[0].code;
};

test.each(['esm', 'iife'] as const)(
  'a bundle as %s is small, and needs nothing of Node',
  async (format) => {
    const code = await bundle(format);

    expect(Buffer.byteLength(code)).toBeLessThan(30 * 1024);
    expect(code).not.toMatch(/node:|require\(|__filename|process\.|Buffer/);
  },
);

test('the same client is there for import and for require', async () => {
  const cwd = program();
  writeFileSync(
    join(cwd, 'both.mjs'),
    `import { createRequire } from 'node:module';
    import { CallError, createClient, openProject } from 'agent-task-server/client';
    const required = createRequire(import.meta.url)('agent-task-server/client');
    const asked = createClient({ url: 'http://127.0.0.1:9', token: '' }).call('list', {});
    console.log((await asked.catch((error) => error)) instanceof required.CallError);
    console.log((await openProject('.').catch((error) => error)).message);
    console.log((await openProject('.').catch((error) => error)) instanceof CallError);`,
  );

  const { stdout } = await execa(process.execPath, ['both.mjs'], { cwd });

  expect(stdout.split('\n')).toEqual([
    'true',
    expect.stringContaining("import openProject from 'agent-task-server/client/node'"),
    'true',
  ]);
});

/** Runs in the page, with the bundle. */
const inPage = async (page: Page, url: string, token: string): Promise<unknown> => {
  const code = await bundle('iife');
  return page.evaluate(`(async () => {
    ${code}
    const server = agentClient.createClient(${JSON.stringify({ url, token })});
    try {
      const { task_id } = await server.call('create', { description: 'From a page' });
      await server.execute({ task_id, role: 'engineer' });
      const { status } = await server.wait(task_id);
      const types = [];
      for await (const { type } of server.stream(task_id, { after: 0 })) types.push(type);
      const none = await server.call('status', { task_id: 'bd-none' }).catch((error) => error);
      return { status, last: types.at(-1), code: none.code };
    } catch (error) {
      return { code: error.code, message: error.message };
    }
  })()`);
};

testUnless(noBrowser)(
  'in a browser it works on the page of the server, and on no other',
  {
    tags: ['slow'],
  },
  async () => {
    const server = await startServer({ page: readPage(), turns: [finish('done')] });
    const other = await startServer({ page: readPage() });
    const browser = await startBrowser();
    onTestFinished(() => browser.close());
    const page = await browser.newPage();
    const token = server.headers.authorization.replace('Bearer ', '');

    await page.goto(server.base);
    const own = await inPage(page, server.base, token);
    await page.goto(other.base);
    const foreign = await inPage(page, server.base, token);

    expect(own).toEqual({ status: 'complete', last: 'stream_closed', code: 'task_not_found' });
    expect(foreign).toMatchObject({ code: 'server_lost' });
  },
);

/** Asked of the registry, in a folder of the test. */
const builds: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  [
    'esbuild@0.28.2',
    [],
    ['esbuild', 'main.js', '--bundle', '--minify', '--format=esm', '--outfile=out.js'],
  ],
  [
    'rollup@4',
    ['@rollup/plugin-node-resolve@16'],
    ['rollup', 'main.js', '-p', 'node-resolve', '-f', 'es', '-o', 'out.js'],
  ],
  [
    'webpack@5',
    ['webpack-cli@6'],
    [
      'webpack',
      './main.js',
      '--mode',
      'production',
      '--output-path',
      '.',
      '--output-filename',
      'out.js',
    ],
  ],
];

testUnless(noRegistry)(
  'esbuild, rollup and webpack bundle it without a word',
  { tags: ['slow'], timeout: 300_000 },
  async () => {
    for (const [name, more, [command = '', ...args]] of builds) {
      const cwd = program();
      const ran = await runPackage([name, ...more], [command, ...args], cwd);

      expect([name, ran.all.match(/(warn|error|circular).*/i)]).toEqual([name, null]);
      expect(readFileSync(join(cwd, 'out.js')).length).toBeLessThan(30 * 1024);
    }
  },
);

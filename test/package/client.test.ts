import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { install } from '../support/installed.ts';

const root = join(import.meta.dirname, '..', '..');
const turns = (tool: string, given: object) => [
  { say: '', calls: [{ tool, arguments: given }] },
  { say: '', calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'done' } }] },
];
const script = {
  scripts: [
    { title: 'Ask', turns: turns('ask', { question: 'May it?' }) },
    {
      title: 'Fail',
      turns: [
        {
          say: '',
          calls: [
            { tool: 'finish', arguments: { status: 'failed', summary: 'It cannot be done' } },
          ],
        },
      ],
    },
    { title: 'Long', turns: turns('bash', { command: 'sleep 60' }) },
    { turns: turns('bash', { command: 'true' }) },
  ],
};

/** A project that has the package among its own. */
const project = () => {
  const { folder, cwd, env, defaultFile, run } = install();
  writeFileSync(join(folder, 'configs', 'script.json'), JSON.stringify(script));
  const config = {
    server: { port: 0 },
    sandbox: { mode: 'off' },
    workspace: { mode: 'shared' },
    api: { backend: 'scripted', script: 'script.json' },
    agent: { max_retries: 0 },
  };
  writeFileSync(defaultFile, JSON.stringify(config));
  mkdirSync(join(cwd, 'node_modules'));
  symlinkSync(folder, join(cwd, 'node_modules', 'agent-task-server'));
  const more: Record<string, string> = {};
  const node = (text: string, ...args: readonly string[]) => {
    const file = join(cwd, 'script.mjs');
    writeFileSync(file, text);
    const options = { cwd, env: { ...env, ...more }, extendEnv: false, reject: false };
    return execa(process.execPath, [file, ...args], options);
  };
  return {
    cwd,
    run,
    more,
    node,
    example: (name: string, ...args: readonly string[]) =>
      node(readFileSync(join(root, 'examples', 'client', name), 'utf8'), ...args),
  };
};

test('the example runs a task, prints what happens, and says whether it is complete', {
  tags: ['slow'],
}, async () => {
  const { example, run } = project();

  const done = await example('run-task.mjs', 'engineer', 'Do it');
  const failed = await example('run-task.mjs', 'engineer', 'Fail');
  const asks = await example('run-task.mjs', 'engineer', 'Ask');
  const refused = await example('run-task.mjs', 'nobody', 'Do it');

  expect([done.exitCode, done.stderr]).toEqual([0, '']);
  expect(done.stdout).toMatch(/ uses bash\n[\s\S]* complete: done$/);
  expect([failed.exitCode, failed.stdout]).toEqual([1, expect.stringContaining(' failed: ')]);
  expect(asks.stdout).toMatch(/asks: May it\?\n[\s\S]*agent respond bd-/);
  expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringMatching(/^role_unknown: /)]);
  expect(JSON.parse((await run('agent', 'list', '--json')).stdout)).toHaveLength(3);
});

test('the example of a CI job runs every open task, and fails unless all are complete', {
  tags: ['slow'],
}, async () => {
  const { example, run, cwd, more } = project();
  more['GITHUB_STEP_SUMMARY'] = join(cwd, 'summary.md');
  const nothing = await example('ci.mjs');
  await run('agent', 'create', 'Without a role');
  const none = await example('ci.mjs');
  await run('agent', 'create', 'First', '--label', 'role:engineer');
  await run('agent', 'create', 'A | B', '--label', 'role:tester');

  const first = await example('ci.mjs');
  await run('agent', 'create', 'Long', '--label', 'role:engineer');
  const second = await example('ci.mjs', '0.03');

  expect([nothing.exitCode, nothing.stdout]).toEqual([
    0,
    expect.stringContaining('0 tasks, $0.00'),
  ]);
  expect([none.exitCode, none.stdout]).toEqual([1, expect.stringContaining('it has no role')]);
  expect([first.exitCode, first.stderr]).toEqual([0, '']);
  expect(first.stdout).toMatch(/\| bd-\w+ \| First \| complete \| {2}\|/);
  expect(first.stdout).toContain('A \\| B | complete');
  expect(second.exitCode).toBe(1);
  expect(second.stdout).toContain('| Long | cancelled | ');
  expect(second.stdout).toContain(' | skipped | ');
  expect(readFileSync(more['GITHUB_STEP_SUMMARY'], 'utf8')).toContain(second.stdout.trim());
});

test('a wait ends at a question, after the answer at the end, and with its signal', {
  tags: ['slow'],
}, async () => {
  const { node } = project();

  const ran = await node(`
    import { openProject } from 'agent-task-server/client/node';
    const server = await openProject('.');
    const run = async (description) => {
      const { task_id } = await server.call('create', { description });
      await server.execute({ task_id, role: 'engineer' });
      return task_id;
    };
    const asks = await run('Ask');
    const task = await server.wait(asks);
    console.log(task.awaiting.question);
    await server.call('respond', { task_id: asks, attempt: 1, input_id: task.awaiting.input_id, text: 'yes' });
    console.log((await server.wait(asks)).status);
    console.log((await server.wait(asks)).status);
    const long = await run('Long');
    console.log((await server.wait(long, { signal: AbortSignal.timeout(300) }).catch((error) => error)).name);
    const frames = [];
    for await (const { seq } of server.stream(asks, { after: 0 })) frames.push(seq);
    const kept = frames.filter((seq) => seq !== null);
    console.log(kept.every((seq, index) => index === 0 || seq > kept[index - 1]), kept.length > 5);
    console.log((await server.wait('bd-none').catch((error) => error)).code);
    await server.call('cancel', { task_id: long });
  `);

  expect([ran.stderr, ran.stdout.split('\n')]).toEqual([
    '',
    ['May it?', 'complete', 'complete', 'TimeoutError', 'true true', 'task_not_found'],
  ]);
});

test('without a server it starts none when told so, and a wrong token is named', {
  tags: ['slow'],
}, async () => {
  const { node, run } = project();
  const code = (text: string) =>
    node(`import { CallError, createClient } from 'agent-task-server/client';
      import { openProject } from 'agent-task-server/client/node';
      await (async () => { ${text} })().catch((error) =>
        console.log(error instanceof CallError, error.code, error.message));`);

  const none = await code("await openProject('.', { start: false });");
  await run('agent', 'server', 'start');
  const { url } = JSON.parse((await run('agent', 'server', 'status', '--json')).stdout);
  const wrong = await code(
    `await createClient({ url: '${url}', token: 'x'.repeat(43) }).call('list', {});`,
  );
  await run('agent', 'server', 'stop');
  const gone = await code(`await createClient({ url: '${url}', token: '' }).call('list', {});`);

  expect([none, wrong, gone].map(({ stdout }) => stdout)).toEqual([
    expect.stringMatching(/^true server_needed .*leave out start: false/),
    expect.stringMatching(/^true unauthorized /),
    expect.stringMatching(/^true server_lost .*agent-task-server\/client\/node/),
  ]);
  expect([none, gone].some(({ stdout }) => stdout.includes('--'))).toBe(false);
});

test('TypeScript knows methods, statuses and frames, however it finds modules', {
  tags: ['slow'],
}, async () => {
  const { cwd } = project();
  const write = (name: string, lines: string): void =>
    writeFileSync(
      join(cwd, name),
      `import { createClient, type Task } from 'agent-task-server/client';
      import { openProject } from 'agent-task-server/client/node';
      const server = createClient({ url: '', token: '' });
      ${lines}`,
    );
  write(
    'right.mts',
    `const { accepted } = await server.call('run', { role: 'tester', options: { when: 'ready' } });
    const task = await server.wait(accepted.map(({ task_id }) => task_id).join());
    const cost: number | undefined = task.usage.cost_usd;
    const shown: { readonly [Status in Task['status']]?: string } = { complete: 'done' };
    for await (const frame of server.stream(null)) {
      if (frame.type === 'tool_start') console.log(frame.data.tool?.toUpperCase(), cost);
      if (frame.type === 'snapshot') console.log(shown[frame.data.task?.status ?? 'queued']);
    }
    await (await openProject('.', { start: false, config: undefined })).execute({ role: 'mine' });`,
  );
  write('wrong.mts', "await server.call('create', { descripton: 'x' });");
  write(
    'frame.mts',
    "for await (const frame of server.stream(null)) if (frame.type === 'usage') frame.data.tool;",
  );
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const options = ['--noEmit', '--strict', '--target', 'es2022'];
  const types = ['--typeRoots', join(root, 'node_modules', '@types'), '--types', 'node'];
  const ways = [
    ['--module', 'node16', '--moduleResolution', 'node16'],
    ['--module', 'esnext', '--moduleResolution', 'bundler'],
  ].flatMap((way) => [way, [...way, '--exactOptionalPropertyTypes']]);

  for (const way of ways) {
    const args = [tsc, ...options, ...types, ...way, 'right.mts', 'wrong.mts', 'frame.mts'];
    const { stdout } = await execa(process.execPath, args, { cwd, reject: false });

    expect([way, stdout.match(/^\w+\.mts.*/gm)?.sort()]).toEqual([
      way,
      [expect.stringMatching(/^frame\.mts/), expect.stringMatching(/^wrong\.mts/)],
    ]);
    expect(stdout).toContain("'descripton' does not exist");
  }
});

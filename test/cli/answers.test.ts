import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary.ts';

const script = {
  scripts: [
    {
      role: 'product-manager',
      turns: [
        { say: '', calls: [{ tool: 'ask', arguments: { question: 'Which one?' } }] },
        { say: '', calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'ok' } }] },
      ],
    },
    {
      role: 'engineer',
      turns: [
        { say: '', calls: [{ tool: 'bash', arguments: { command: 'true' } }] },
        { say: '', calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'ok' } }] },
      ],
    },
  ],
};

const setUp = () => {
  const file = join(temporaryFolder(), 'script.json');
  writeFileSync(file, JSON.stringify(script));
  return openProject({
    api: { backend: 'scripted', script: file },
    roles: { engineer: { require_approval: ['bash'] } },
  });
};
type Project = ReturnType<typeof setUp>;

const asking = async (project: Project, role: string): Promise<string> => {
  const id = (await project.agent('create', 'x')).out.trim();
  await project.agent(role, id, '--async');
  for (;;) {
    const { awaiting } = JSON.parse((await project.agent('show', id, '--json')).out);
    if (awaiting !== undefined) return id;
  }
};

test('respond alone shows the question and asks for the answer on a terminal', async () => {
  const project = setUp();
  const id = await asking(project, 'product-manager');

  const answered = await project.typing(['the second one'], 'respond', id);

  expect(answered.code).toBe(0);
  expect(answered.out).toMatch(/Which one\?[\s\S]*Answer: /);
  expect((await project.agent('wait', id)).code).toBe(0);
  expect((await project.agent('logs', id)).out).toContain('a person answered: the second one');
});

test('a blank answer is refused, and the question stays open', async () => {
  const project = setUp();
  const id = await asking(project, 'product-manager');

  const blank = await project.agent('respond', id, '   ');
  const answered = await project.agent('respond', id, 'the second one');

  expect(blank).toMatchObject({ code: 2, err: expect.stringContaining('an answer has a word') });
  expect(answered.code).toBe(0);
});

test('a run on a terminal says how a task that asks is answered', { tags: ['slow'] }, async () => {
  const project = setUp();
  const id = (await project.agent('create', 'x', '--role', 'product-manager')).out.trim();

  const run = project.startOnTerminal('run', id);
  const ended = project.collect(run);
  // The answer waits for the line: a table that is drawn late would miss the question.
  const hint = `press Enter to answer ${id}; in another terminal: agent respond ${id}`;
  let shown = '';
  await new Promise<void>((resolve) => {
    run.stdout?.on('data', (chunk: string) => {
      shown += chunk;
      if (shown.includes(hint)) resolve();
    });
    run.once('close', () => resolve());
  });
  await project.agent('respond', id, 'the second one');

  expect(shown).toContain(hint);
  expect((await ended).code).toBe(0);
});

test('a run on a terminal takes the answer there, after Enter', { tags: ['slow'] }, async () => {
  const project = setUp();
  const id = (await project.agent('create', 'x', '--role', 'product-manager')).out.trim();

  const run = project.startOnTerminal('run', id);
  const ended = project.collect(run);
  const typed = [
    ['press Enter to answer', '\r'],
    ['Answer: ', 'the second one\r'],
  ];
  let shown = '';
  run.stdout?.on('data', (chunk: string) => {
    shown += chunk;
    const [awaited = '', keys = ''] = typed[0] ?? [];
    if (typed.length === 0 || !shown.includes(awaited)) return;
    typed.shift();
    run.stdin?.write(keys);
  });

  expect((await ended).code).toBe(0);
  expect(shown).toContain('Which one?');
  expect((await project.agent('logs', id)).out).toContain('a person answered: the second one');
});

test('respond alone asks y or n for an approval, and why not', async () => {
  const project = setUp();
  const id = await asking(project, 'engineer');

  const answered = await project.typing(['what?', 'n', 'use the script'], 'respond', id);

  expect(answered.out.match(/Allow\? \[y\/n\]/g)).toHaveLength(2);
  expect(answered.out).toContain('Why not?');
  expect(answered.code).toBe(0);
  const logs = (await project.agent('logs', id)).out;
  expect(logs).toContain('a person denied it: use the script');
});

test('respond alone changes nothing when nobody answers, or nobody is there', async () => {
  const project = setUp();
  const id = await asking(project, 'engineer');

  for (const ended of [await project.typing([], 'respond', id), await project.agent('respond', id)])
    expect(ended).toMatchObject({ code: 2, err: expect.stringContaining('--allow or --deny') });
  expect((await project.agent('show', id)).out).toContain('asks permission');
});

test('a run takes the answer in its terminal', async () => {
  const project = setUp();

  const ran = await project.typing(
    ['the second one'],
    'create',
    'x',
    '--role',
    'product-manager',
    '--run',
  );

  expect(ran.code).toBe(0);
  expect(ran.out).toContain('Answer: ');
  expect(ran.out).toMatch(/complete in/);
});

test('wait says what it waits for, ps what is at work, and stop what it parks', async () => {
  const project = setUp();
  const id = await asking(project, 'product-manager');
  const idle = (await project.agent('create', 'y')).out.trim();

  const waited = await project.agent('wait', id, idle, '--timeout', '1');
  const listed = await project.agent('ps');
  const stopped = await project.agent('server', 'stop');

  expect(waited.code).toBe(124);
  expect(waited.err).toContain(
    `waiting for ${id}: started (asks you), product-manager, attempt 1 of 3; it asks you: agent respond ${id}`,
  );
  expect(waited.err).toContain(
    `waiting for ${idle}: queued (ready); nobody runs it yet: agent engineer ${idle}`,
  );
  expect(listed.out).toContain(id);
  expect(listed.out).not.toContain(idle);
  expect(stopped.out).toMatch(
    new RegExp(
      `has stopped\n1 running task is parked; it goes on when a server starts: agent server start\n {2}${id} \\(product-manager, attempt 1\\)\n$`,
    ),
  );
});

test('retry says how to watch what it started', async () => {
  const project = setUp();
  const id = await asking(project, 'product-manager');
  await project.agent('cancel', id);

  const retried = await project.agent('retry', id, '--async');

  expect(retried).toMatchObject({
    code: 0,
    out: `${id} started
`,
  });
  expect(retried.err).toContain(`agent logs -f ${id}`);
});

test('the time of a task that waits for a person stands still, and is not counted', {
  tags: ['slow'],
}, async () => {
  const project = setUp();
  const id = await asking(project, 'product-manager');
  const asked = JSON.parse((await project.agent('show', id, '--json')).out);

  await delay(1_500);
  await project.agent('respond', id, 'the second one');
  await project.agent('wait', id);
  const task = JSON.parse((await project.agent('show', id, '--json')).out);
  const shown = (await project.agent('show', id)).out;
  const [completed] = (await project.agent('logs', id, '--json')).out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter(({ type }) => type === 'completed');

  expect(Date.parse(asked.waits_since)).toBeGreaterThanOrEqual(Date.parse(asked.started_at));
  expect(task.waits_since).toBeUndefined();
  expect(task.waited_seconds).toBeGreaterThanOrEqual(1.5);
  const all = (Date.parse(task.completed_at) - Date.parse(task.started_at)) / 1_000;
  expect(completed.data.execution_seconds).toBeCloseTo(all - task.waited_seconds, 2);
  expect(shown).toMatch(/waited +\d\.\d s, not in its time/);
});

test('a task that is cancelled while it asks has no time of that wait', async () => {
  const project = setUp();
  const id = await asking(project, 'product-manager');

  await delay(1_200);
  await project.agent('cancel', id);
  const task = JSON.parse((await project.agent('show', id, '--json')).out);

  expect(task.waited_seconds).toBeGreaterThanOrEqual(1.2);
  expect(task.waits_since).toBeUndefined();
});

test('the reason of a close is in the log, with a server and without', async () => {
  const project = setUp();
  const [one, two] = [
    (await project.agent('create', 'x')).out.trim(),
    (await project.agent('create', 'y')).out.trim(),
  ];

  await project.agent('close', one, '--reason', 'done by hand');
  await project.agent('server', 'start');
  await project.agent('close', two, '--reason', 'not needed');

  expect((await project.agent('logs', one)).out).toContain('a person closed it: done by hand');
  expect((await project.agent('logs', two)).out).toContain('a person closed it: not needed');
});

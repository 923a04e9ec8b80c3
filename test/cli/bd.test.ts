import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bdIn, type Family, makeBd, makeBroken } from '../support/bd.ts';
import { openProject } from '../support/cli.ts';

/** A project with this bd on PATH. */
const open = (family: Family = 'A-direct') => {
  const project = openProject();
  const bd = makeBd(family);
  const env = { PATH: `${bd.bin}:${process.env['PATH']}` };
  const agent = (...args: string[]) => project.agentWith(env, ...args);
  const commands = (from = 0) =>
    bd
      .calls()
      .slice(from)
      .map(({ argv }) => argv.filter((word) => !word.startsWith('--json')).join(' '));
  return { ...project, bd, env, agent, commands };
};

test('init sets the project up in bd, imports the tasks, and lists what bd wrote', async () => {
  const { root, agent, agentWith, commands } = open('D');
  await agentWith({ PATH: process.env['PATH'] }, 'create', 'made before');

  const { code, out, err } = await agent('init');
  const { out: list } = await agent('list');

  expect(code).toBe(0);
  expect(commands()).toContain(
    'init --prefix=bd --quiet --skip-hooks --from-jsonl --skip-agents --non-interactive',
  );
  expect(out).toMatch(
    /bd keeps the tasks of this project now \(bd 1\.3\.0\)\ntasks: 1\nwrote AGENTS\.md\nwrote \.beads\//,
  );
  expect(err).toContain('bd wrote AGENTS.md');
  expect(list).toContain('made before');
  expect((await agent('init')).out).toContain('already');
  expect(existsSync(join(root, '.beads', 'embeddeddolt'))).toBe(true);
});

test('init uses our own file on request, or when bd is missing or broken', async () => {
  const { root, agent, agentWith } = open();

  const wanted = await agent('init', '--tracker', 'embedded');
  const broken = await agentWith(
    { PATH: `${join(makeBroken('#!/bin/sh\nexit 3\n'), '..')}:${process.env['PATH']}` },
    ...['init', '--json'],
  );

  expect(wanted.out).toContain('issues.jsonl');
  expect(broken.err).toMatch(
    /bd is installed but does not work: exit code 3; the built-in tracker keeps/,
  );
  expect(JSON.parse(broken.out)).toMatchObject({ tracker: 'embedded', already: true });
  expect(existsSync(join(root, '.beads', 'beads.db'))).toBe(false);
});

test('init leaves the tracker of a running server alone', { tags: ['slow'] }, async () => {
  const { agent } = open();
  await agent('server', 'start');

  const { code, err } = await agent('init');

  expect([code, err]).toEqual([
    2,
    expect.stringContaining("stop it first with 'agent server stop'"),
  ]);
});

test('only init sets bd up or imports into it', async () => {
  const { root, bd, agent, commands } = open();

  await agent('create', 'one');
  await agent('list');
  await agent('doctor');

  expect(new Set(commands())).toEqual(new Set(['version']));
  expect(existsSync(join(root, '.beads', 'beads.db'))).toBe(false);
  expect((await agent('doctor')).out).toMatch(
    /^ok +tracker +embedded, 1 task; bd 0\.49\.6 is installed; 'agent init' moves/m,
  );
  expect(bd.calls().length).toBeGreaterThan(0);
});

test('without a server a list takes two calls of bd, and bd creates, shows, closes and links tasks', {
  tags: ['slow'],
}, async () => {
  const { agent, commands, bd, root } = open();
  await agent('init');
  const first = (await agent('create', 'first', '--priority', '1', '--label', 'x')).out.trim();
  const second = (await agent('create', 'second', '--deps', first)).out.trim();
  const before = bd.calls().length;

  const { out } = await agent('list', '--status', 'queued', '--json');
  const listed = commands(before);
  await agent('dep', 'remove', second, first);
  await agent('dep', 'add', second, first);
  const refused = await agent('close', second);
  await agent('close', first, '--reason=--force');
  const free = await agent('list', '--status', 'queued');

  expect(listed).toEqual(['list --all --limit=0', 'ready --limit=0']);
  expect(JSON.parse(out)).toMatchObject([
    { task_id: first, priority: 1, labels: ['x'], ready: true },
  ]);
  expect([refused.code, refused.err]).toEqual([
    4,
    expect.stringContaining(`unmet dependencies [${first}]`),
  ]);
  expect(free.out).toContain(second);
  expect(JSON.parse(await bdIn(bd, root, 'show', '--json', '--', first))).toMatchObject([
    { status: 'closed', close_reason: '--force' },
  ]);
});

test('a run claims and closes its task in bd, and doctor and health name bd', {
  tags: ['slow'],
}, async () => {
  const { agent, bd, root, serverFile } = open('C');
  await agent('init');

  const { code, out } = await agent('engineer', 'do a thing');
  const health = (await (await fetch(`${serverFile().url}/health`)).json()) as {
    checks: { tracker: unknown };
  };
  const doctor = await agent('doctor');

  expect([code, out]).toEqual([0, expect.stringContaining('complete')]);
  const [issue] = JSON.parse(await bdIn(bd, root, 'list', '--all', '--json', '--limit=0'));
  expect(issue).toMatchObject({ status: 'closed', assignee: 'agent-server' });
  expect(health.checks.tracker).toEqual({
    status: 'ok',
    detail: "bd 1.0.4; bd keeps this project's tasks (.beads/config.yaml)",
  });
  expect(doctor.out).toMatch(/^ok +tracker +bd 1\.0\.4; bd keeps/m);
  expect(doctor.out).toContain(`bd 1.0.4 at ${bd.path}`);
});

test('a project of bd without bd is a warning and a refusal, never an empty list', async () => {
  const { agent, agentWith } = open();
  await agent('init');
  await agent('create', 'one');
  const without = { PATH: process.env['PATH'] };

  const list = await agentWith(without, 'list');
  const create = await agentWith(without, 'create', 'two', '--json');

  expect([list.code, list.out]).toEqual([6, '']);
  expect(list.err).toMatch(/bd is not on PATH; install bd, or set tracker\.bd_path/);
  expect(create.code).toBe(6);
  expect(JSON.parse(create.out).error.code).toBe('tracker_unavailable');
  expect((await agentWith(without, 'doctor')).out).toMatch(
    /^problem +tracker +the task tracker cannot be used: bd is not on PATH/m,
  );
});

test('tracker.mode bd asks for init first, and tracker.bd_path names another program', async () => {
  const bd = makeBd('A-direct');
  const project = openProject({
    api: { backend: 'scripted' },
    tracker: { mode: 'bd', bd_path: bd.path },
  });
  mkdirSync(join(project.root, '.beads'), { mode: 0o700 });

  const before = await project.agent('list');
  writeFileSync(
    join(project.root, '.beads', 'issues.jsonl'),
    '{"id":"bd-a1b2","title":"ours","created_at":"2026-11-20T10:00:00Z","updated_at":"2026-11-20T10:00:00Z"}\n',
  );
  const ours = await project.agent('list');
  await project.agent('init');
  const after = await project.agent('create', 'one', '--json');

  expect([before.code, before.err]).toEqual([
    6,
    expect.stringContaining("run 'agent init' in the project"),
  ]);
  expect([ours.code, ours.err]).toEqual([
    6,
    expect.stringContaining('the 1 tasks of this project are in .beads/issues.jsonl'),
  ]);
  expect(JSON.parse(after.out)).toMatchObject({ status: 'queued' });
  expect((await project.agent('list')).out).toContain('ours');
});

test('a configured name claims in bd', { tags: ['slow'] }, async () => {
  const bd = makeBd('A-direct');
  const project = openProject({
    api: { backend: 'scripted' },
    tracker: { bd_path: bd.path, actor: 'laptop-1' },
  });
  await project.agent('init');

  await project.agent('engineer', 'do a thing');

  const [issue] = JSON.parse(await bdIn(bd, project.root, 'list', '--all', '--json', '--limit=0'));
  expect(issue).toMatchObject({ status: 'closed', assignee: 'laptop-1' });
});

test('a tracker.bd_path that is not absolute is refused by name', async () => {
  const project = openProject({ tracker: { bd_path: 'bin/bd' } });

  const { code, err } = await project.agent('list');

  expect([code, err]).toEqual([
    78,
    expect.stringContaining('tracker.bd_path: must be an absolute path'),
  ]);
});

test('tasks move from our file to bd and back without loss', { tags: ['slow'] }, async () => {
  const { root, agent, agentWith, bd } = open();
  const file = join(root, '.beads', 'issues.jsonl');
  const kept = [
    '{"_type":"memory","text":"remember"}',
    '{"id":"bd-a1b2","title":"one","status":"closed","priority":1,"issue_type":"bug","created_at":"2026-11-20T10:00:00Z","updated_at":"2026-11-20T10:00:01Z","closed_at":"2026-11-20T10:00:01Z","x_other":{"deep":[1]},"metadata":{"run":"r1"}}',
    '{"id":"bd-c3d4","title":"two","status":"open","priority":2,"issue_type":"task","created_at":"2026-11-20T10:00:00Z","updated_at":"2026-11-20T10:00:00Z","dependencies":[{"issue_id":"bd-c3d4","depends_on_id":"bd-a1b2","type":"blocks","created_at":"2026-11-20T10:00:00Z"}]}',
    '{"id":"bd-gone","title":"deleted","status":"tombstone","created_at":"2026-11-20T10:00:00Z","updated_at":"2026-11-20T10:00:00Z"}',
  ];
  mkdirSync(join(root, '.beads'), { mode: 0o700 });
  writeFileSync(file, `${kept.join('\n')}\n`);
  await agentWith({ PATH: process.env['PATH'] }, 'create', 'three');
  const ours = readFileSync(file, 'utf8').trimEnd().split('\n');

  const adopted = await agent('init');
  await agent('close', 'bd-c3d4', '--reason', 'Completed in bd, truly');
  // The way back of docs/guides/trackers.md: bd's export replaces the file, bd's own files are
  // moved away.
  writeFileSync(file, await bdIn(bd, root, 'export'));
  for (const name of ['beads.db', 'config.yaml', 'metadata.json'])
    rmSync(join(root, '.beads', name));
  const back = JSON.parse((await agentWith({ PATH: process.env['PATH'] }, 'list', '--json')).out);

  expect(ours).toEqual(expect.arrayContaining(kept));
  expect(adopted.out).toContain('tasks: 3');
  expect(
    back.map(({ task_id, status }: { task_id: string; status: string }) => [task_id, status]),
  ).toEqual(
    expect.arrayContaining([
      ['bd-a1b2', 'complete'],
      ['bd-c3d4', 'complete'],
    ]),
  );
  expect(back).toHaveLength(3);
  expect(
    back.find(({ task_id }: { task_id: string }) => task_id === 'bd-c3d4').dependencies,
  ).toEqual(['bd-a1b2']);
});

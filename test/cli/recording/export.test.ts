import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { sealOf } from '../../../src/actors/journal/replay/prove-recording.ts';
import type { RecordedEntry, Recording } from '../../../src/actors/journal/replay/recording.ts';
import { recordingIn } from '../../../src/cli/recording/recording-document.ts';
import { openProject } from '../../support/cli.ts';
import { randomFrom, seed } from '../../support/random.ts';
import { rehashed } from '../../support/recordings.ts';

type Project = ReturnType<typeof openProject>;

const ranTask = async ({ agent }: Project, text = 'Do it'): Promise<string> => {
  const id = (await agent('create', text)).out.trim();
  await agent('engineer', id);
  return id;
};
const recordingOf = (file: string): Recording =>
  JSON.parse(recordingIn(readFileSync(file, 'utf8')) ?? '');
/** Writes the file again with other data, as somebody may. */
const change = (file: string, changed: (recording: Recording) => Recording): void => {
  const text = readFileSync(file, 'utf8');
  const before = recordingIn(text) ?? '';
  const after = JSON.stringify(changed(JSON.parse(before))).replaceAll('<', '\\u003c');
  writeFileSync(
    file,
    text.replace(before, () => after),
  );
};
const reseal = ({ seal: _, ...rest }: Recording): Recording => ({ ...rest, seal: sealOf(rest) });

test('a task is exported and proven, with and without a server, and outside of its project', async () => {
  const project = openProject();
  const { agent, root, stopServer } = project;
  const id = await ranTask(project);

  const live = await agent('export', id);
  const proven = await agent('replay', '--verify', `${id}.html`);
  await stopServer();
  const offline = await agent('export', id, '-o', 'offline.html', '--json');
  const json = JSON.parse((await agent('replay', '--verify', 'offline.html', '--json')).out);
  const elsewhere = await openProject().agent('replay', '--verify', join(root, `${id}.html`));

  const file = join(root, `${id}.html`);
  expect(live).toMatchObject({
    code: 0,
    err: '',
    out: expect.stringMatching(/^wrote bd-\w+\.html \(/),
  });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(proven).toMatchObject({ code: 0, err: '' });
  expect(proven.out).toContain('no entry was altered, reordered or cut off');
  expect(proven.out).toMatch(/machines {2}come to every recorded state/);
  expect(proven.out).toMatch(/page {6}as this agent writes it/);
  expect(proven.out).toContain(`the journal of ${root} has the same entry`);
  expect(JSON.parse(offline.out)).toMatchObject({ task_id: id, file: join(root, 'offline.html') });
  expect(json).toMatchObject({ task_id: id, replayed: true, page: 'ours', problem: null });
  expect(json.entries).toBe(recordingOf(file).head?.entries);
  expect(elsewhere.code).toBe(0);
  expect(elsewhere.out).toContain('not compared with the journal of a project');
  expect(elsewhere.out).toContain('they fit together; that nobody wrote them anew is not proven');
  expect(elsewhere.out).not.toContain('no entry was altered');
});

test('a file that holds nothing but hashes, or no journal, is never called whole', async () => {
  const project = openProject();
  const id = await ranTask(project);
  const other = openProject();
  await project.agent('export', id, '-o', 'task.html');
  const whole = readFileSync(join(project.root, 'task.html'), 'utf8');
  const cut = async (changed: (recording: Recording) => Recording) => {
    const file = join(project.root, 'cut.html');
    writeFileSync(file, whole);
    change(file, (recording) => reseal(changed(recording)));
    return [
      await project.agent('replay', '--verify', 'cut.html'),
      await other.agent('replay', '--verify', file),
    ] as const;
  };
  const gapOf = ({ head }: Recording) => ({
    ...({ why: 'size', transitions: 0, bytes: 0 } as const),
    ...{ entries: head?.entries ?? 0, through_seq: head?.seq ?? 0, hash: head?.hash ?? null },
  });

  const hollow = await cut((recording) => ({ ...recording, items: [gapOf(recording)] }));
  const empty = await cut((recording) => ({ ...recording, items: [], head: null }));

  for (const { code, out } of [...hollow, ...empty]) {
    expect(code).toBe(9);
    expect(out).toContain('not run, so no state is proven');
    expect(out).not.toContain('no entry was altered');
  }
  for (const { out } of hollow)
    expect(out).toContain(
      '0 of them are in the file and fit together; what the others hold is not',
    );
  for (const { out } of empty) expect(out).toContain('it holds no journal, so nothing is proven');
});

test('a file is replaced only with --force, and - is standard output', async () => {
  const { agent, root } = openProject();
  const id = (await agent('create', 'Never ran')).out.trim();
  writeFileSync(join(root, 'mine.html'), 'mine');
  mkdirSync(join(root, 'folder'));

  const refused = await agent('export', id, '-o', 'mine.html');
  const kept = readFileSync(join(root, 'mine.html'), 'utf8');
  const forced = await agent('export', id, '-o', 'mine.html', '--force');
  const printed = await agent('export', id, '-o', '-');
  writeFileSync(join(root, 'printed.html'), printed.out);

  expect(refused).toMatchObject({
    code: 2,
    err: expect.stringContaining('mine.html exists; --force replaces it, -o names another'),
  });
  expect(kept).toBe('mine');
  expect(forced.code).toBe(0);
  expect(await agent('replay', '--verify', 'mine.html')).toMatchObject({ code: 0 });
  expect(await agent('replay', '--verify', 'printed.html')).toMatchObject({ code: 0 });
  expect(await agent('export', id, '-o', 'folder', '--force')).toMatchObject({
    code: 2,
    err: expect.stringContaining('is not a file'),
  });
  expect(await agent('export', id, '-o', 'none/x.html')).toMatchObject({
    code: 2,
    err: expect.stringContaining('does not exist'),
  });
  expect(await agent('export', 'bd-none')).toMatchObject({ code: 3 });
  expect(existsSync(join(root, `${id}.html`))).toBe(false);
});

test('any byte of the file that was changed is found', { tags: ['slow'] }, async () => {
  const project = openProject();
  const id = await ranTask(project);
  await project.stopServer();
  await project.agent('export', id, '-o', 'task.html');
  const whole = readFileSync(join(project.root, 'task.html'));
  const start = whole.indexOf('id="recording"');
  const end = whole.lastIndexOf('<script');
  const random = randomFrom(seed);

  for (let n = 0; n < 60; n += 1) {
    // Most in the data, some in the page around it.
    const place =
      n % 4 === 0
        ? Math.floor(random() * whole.length)
        : start + Math.floor(random() * (end - start));
    const bytes = Buffer.from(whole);
    bytes[place] = bytes[place] === 0x37 ? 0x38 : 0x37;
    writeFileSync(join(project.root, 'changed.html'), bytes);

    const { code, err } = await project.agent('replay', '--verify', 'changed.html');
    expect({ place, seed, code, err }).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^agent: changed\.html: ./),
    });
  }
  for (const part of [whole.subarray(0, -1), whole.subarray(0, end), whole.subarray(0, 500)]) {
    writeFileSync(join(project.root, 'changed.html'), part);
    expect(await project.agent('replay', '--verify', 'changed.html')).toMatchObject({ code: 1 });
  }
});

test('a history that was written anew is found where the journal is', {
  tags: ['slow'],
}, async () => {
  const project = openProject();
  const id = await ranTask(project);
  const file = join(project.root, 'forged.html');
  await project.agent('export', id, '-o', 'forged.html');
  change(file, (recording) => {
    const items = recording.items as readonly RecordedEntry[];
    const forged = rehashed(
      items.map((item) =>
        item.type === 'log' || item.type === 'text_delta' ? { ...item, at: item.at + 1 } : item,
      ),
    );
    const last = forged.at(-1);
    const head = last && { seq: last.seq, entries: forged.length, hash: last.hash };
    return reseal({ ...recording, items: forged, head: head ?? null });
  });

  const here = await project.agent('replay', '--verify', 'forged.html');
  const elsewhere = await openProject().agent('replay', '--verify', file);

  expect(here).toMatchObject({
    code: 1,
    err: expect.stringMatching(
      /the journal of .* has no such entry \d+: the file was altered, or is of another copy of the project/,
    ),
  });
  // As the guide says: a file alone cannot tell.
  expect(elsewhere.code).toBe(0);
});

test('a running task is exported as it is, and its journal goes on', async () => {
  const script = {
    scripts: [
      {
        turns: [
          { say: 'I wait.', calls: [{ tool: 'bash', arguments: { command: 'exec sleep 60' } }] },
        ],
      },
    ],
  };
  const folder = openProject();
  const scriptFile = join(folder.root, 'script.json');
  writeFileSync(scriptFile, JSON.stringify(script));
  const { agent } = openProject({ api: { backend: 'scripted', script: scriptFile } });
  const id = (await agent('create', 'Wait')).out.trim();
  await agent('engineer', id, '--async');
  await vi.waitFor(
    async () => expect((await agent('logs', id)).out).toContain('exec sleep'),
    10_000,
  );

  await agent('export', id, '-o', 'running.html');
  const running = await agent('replay', '--verify', 'running.html');
  await agent('cancel', id);
  const later = await agent('replay', '--verify', 'running.html');

  expect(running).toMatchObject({ code: 0, err: '' });
  expect(later.code).toBe(0);
  expect(later.out).toContain(', and later ones');
  expect(later.out).toMatch(/or cut off up to entry \d+; the journal goes on/);
});

test('no secret is in the file, and no path of a home that is not in the journal', async () => {
  const project = openProject();
  const key = 'sk-canary-0123456789';
  const id = await ranTask(project, `Use the key ${key}`);
  const token = (await project.agent('token')).out.trim();

  const env = { OPENAI_API_KEY: key };
  const said = await project.agentWith(env, 'export', id, '-o', 'task.html');

  const document = readFileSync(join(project.root, 'task.html'), 'utf8');
  expect(said.err).toContain('note: a part was too large, held a secret or was removed');
  expect(document).not.toContain(key);
  expect(document).not.toContain(token);
  const { items: _, ...beside } = recordingOf(join(project.root, 'task.html'));
  for (const path of [project.root, project.stateDir, project.env.HOME])
    expect(JSON.stringify(beside)).not.toContain(path);
  expect(beside.task.title).toBe('Use the key [secret]');
  // Each snapshot of the task had the key in its title.
  expect(await project.agentWith(env, 'replay', '--verify', 'task.html')).toMatchObject({
    code: 9,
    out: expect.stringContaining('not run, so no state is proven'),
  });
});

test('files that are no exported task, and words that do not fit, are refused', async () => {
  const { agent, root } = openProject();
  const id = (await agent('create', 'Do it')).out.trim();
  writeFileSync(join(root, 'other.html'), '<h1>no</h1>');

  expect(await agent('replay', '--verify', 'other.html')).toMatchObject({
    code: 1,
    err: 'agent: other.html: it holds no task that agent export wrote, or its end is missing\n',
  });
  expect(await agent('replay', '--verify', 'none.html')).toMatchObject({
    code: 2,
    err: expect.stringContaining('none.html cannot be read'),
  });
  expect(await agent('replay')).toMatchObject({
    code: 2,
    err: 'agent: replay needs <task_id>: agent replay <task_id>\n',
  });
  expect(await agent('replay', id, '--verify', 'other.html')).toMatchObject({
    code: 2,
    err: 'agent: give a task or --verify, not both\n',
  });
  await agent('export', id, '-o', 'deep.html');
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  const text = readFileSync(join(root, 'deep.html'), 'utf8');
  writeFileSync(join(root, 'deep.html'), text.replace('"task":{', `"task":{"x":${deep},`));
  expect(await agent('replay', '--verify', 'deep.html')).toMatchObject({
    code: 1,
    err: 'agent: deep.html: it was changed, so it cannot be read (at its beginning)\n',
  });
  await agent('export', id, '-o', 'new.html');
  change(join(root, 'new.html'), (recording) => ({ ...recording, version: 2 as 1 }));
  expect(await agent('replay', '--verify', 'new.html')).toMatchObject({
    code: 1,
    err: 'agent: new.html: another version of agent wrote it (form 2)\n',
  });
});

test('a file is proven in a folder that can be no project', { tags: ['slow'] }, async () => {
  const project = openProject();
  const id = await ranTask(project);
  await project.agent('export', id, '-o', 'task.html');
  const nowhere = join(project.root, 'no-folder');

  const said = await project.agent('replay', '--verify', 'task.html', '--project', nowhere);

  expect(said).toMatchObject({ code: 0, err: '' });
  expect(said.out).toContain(
    `not compared with the journal of a project: the project folder ${nowhere}`,
  );
  expect(await project.agent('list', '--project', nowhere)).toMatchObject({ code: 2 });
});

test('a server gives the same file to who has its token, without a secret', async () => {
  const key = 'sk-live-4711-0815-2342-of-nobody';
  const project = openProject();
  const env = { OPENAI_API_KEY: key };
  const id = (await project.agentWith(env, 'create', 'Do it')).out.trim();
  await project.agentWith(env, 'engineer', id);
  await project.agentWith(env, 'edit', id, '--title', `Use the key ${key}`);
  const token = (await project.agent('token')).out.trim();
  const ask = (path: string, headers: Readonly<Record<string, string>>) =>
    fetch(`${project.serverFile().url}/export/${path}`, { headers });
  const own = { authorization: `Bearer ${token}` };

  const refused = await ask(id, {});
  const unknown = await ask('bd-none', own);
  const given = await ask(id, own);
  const text = await given.text();
  writeFileSync(join(project.root, 'given.html'), text);

  expect(refused.status).toBe(401);
  expect(unknown.status).toBe(404);
  expect(given.status).toBe(200);
  expect(given.headers.get('content-disposition')).toBe('attachment');
  expect(text).not.toContain(key);
  expect(text).not.toContain(token);
  expect(recordingOf(join(project.root, 'given.html')).task.title).toBe('Use the key [secret]');
  expect(await project.agent('replay', '--verify', 'given.html')).toMatchObject({ code: 0 });
});

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { jpeg, png, webp } from '../support/images.ts';

const open = () => {
  const project = openProject();
  const place = (name: string, content: Buffer | string): string => {
    writeFileSync(join(project.root, name), content);
    return name;
  };
  return { ...project, place };
};

test.each([
  ['without a server', ['--no-start']],
  ['at a server', []],
])('images are attached to a new task, and shown with it: %s', async (_, flags) => {
  const { agent, place } = open();
  if (flags.length === 0) await agent('server', 'start');
  const [one, two] = [place('shot.png', png()), place('no ending', webp)];

  const created = await agent(
    'create',
    'Fix it',
    '--attach',
    one,
    '--attach',
    two,
    '--json',
    ...flags,
  );
  const { task_id: id, attachments } = JSON.parse(created.out);
  const shown = await agent('show', id);
  const json = JSON.parse((await agent('show', id, '--json')).out);

  expect(
    attachments.map(({ name, media_type }: Record<string, string>) => [name, media_type]),
  ).toEqual([
    ['shot.png', 'image/png'],
    ['no ending', 'image/webp'],
  ]);
  expect(json.attachments).toEqual(attachments);
  expect(shown.out).toContain(
    `images     shot.png (PNG, ${png().length} B), no ending (WEBP, 12 B)`,
  );
});

test('an agent of the task gets the images: the log names them', async () => {
  const { agent, place } = open();

  const ran = await agent(
    ...['create', 'Fix it', '--attach', place('a.jpg', jpeg), '--role', 'engineer', '--run'],
  );
  const id = /created (\S+)/.exec(ran.err)?.[1] ?? '';

  expect(ran.code).toBe(0);
  expect((await agent('logs', id)).out).toContain('attached: a.jpg');
});

const refused: readonly (readonly [string, string, (root: string, path: string) => void])[] = [
  ['that does not exist', 'it does not exist', () => {}],
  ['that is a folder', 'it is a folder', (_, path) => mkdirSync(path)],
  ['of text', 'it is no PNG, JPEG or WebP image', (_, path) => writeFileSync(path, 'text')],
  ['that is empty', 'it is no PNG, JPEG or WebP image', (_, path) => writeFileSync(path, '')],
  [
    'of 6 MiB',
    'MiB, and an image may have 5 MiB',
    (_, path) => writeFileSync(path, png(1, { padding: 6 * 1024 * 1024 })),
  ],
  ['that is a pipe', 'it is no regular file', (_, path) => execFileSync('mkfifo', [path])],
];

test.each(refused)('a file %s is refused, and no task is made', async (_, why, make) => {
  const { agent, root } = open();
  make(root, join(root, 'shot.png'));

  const ended = await agent('create', 'Fix it', '--attach', 'shot.png');

  expect(ended).toMatchObject({ code: 2, out: '' });
  expect(ended.err).toContain('shot.png cannot be attached: ');
  expect(ended.err).toContain(why);
  expect(ended.err).toContain('no task was made');
  expect((await agent('list', '--json')).out).toBe('[]\n');
});

test('more images than a task may have are refused', async () => {
  const { agent, place } = open();
  const nine = Array.from({ length: 9 }, (_, n) => ['--attach', place(`${n}.png`, png(n))]).flat();
  const big = [1, 2, 3].flatMap((n) => [
    '--attach',
    place(`big${n}.png`, png(n, { padding: 4 * 1024 * 1024 })),
  ]);

  expect(await agent('create', 'Fix it', ...nine)).toMatchObject({
    code: 2,
    err: expect.stringContaining('a task has at most 8 images; no task was made'),
  });
  expect(await agent('create', 'Fix it', ...big)).toMatchObject({
    code: 2,
    err: expect.stringContaining('may have 10 MiB together; no task was made'),
  });
  expect((await agent('list', '--json')).out).toBe('[]\n');
});

test('the file of the tasks holds no image', async () => {
  const { agent, place, root } = open();

  await agent('create', 'Fix it', '--attach', place('shot.png', png()), '--no-start');

  const issues = readFileSync(join(root, '.beads', 'issues.jsonl'), 'utf8');
  expect(issues).toContain('Fix it');
  expect(issues).not.toContain(png().toString('base64').slice(0, 40));
});

import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary.ts';

/** An editor that writes these texts, one each time it is opened. */
const editorWith = (...texts: string[]): string => {
  const folder = temporaryFolder();
  for (const [at, text] of texts.entries()) writeFileSync(join(folder, `text-${at}`), text);
  const editor = join(folder, 'editor');
  const turns = join(folder, 'turns');
  writeFileSync(
    editor,
    `#!/bin/sh\necho x >> ${turns}\nn=$(($(wc -l < ${turns}) - 1))\ncat ${folder}/text-$n > "$1"\n`,
  );
  chmodSync(editor, 0o755);
  return editor;
};

const setUp = async (before: string | null) => {
  const project = openProject();
  const home = temporaryFolder();
  const file = (await project.agentWith({ XDG_CONFIG_HOME: home }, 'config', 'path')).out.trim();
  if (before !== null) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, before);
  }
  const edit = (editor: string, typed = '') =>
    project.shell(
      `printf '${typed}' | XDG_CONFIG_HOME=${home} VISUAL= EDITOR=${editor} script -qec "$AGENT config edit" /dev/null`,
    );
  return { ...project, file, edit, text: () => readFileSync(file, 'utf8') };
};

const good = '{"agent": {"max_turns": 9}}\n';
const better = '{\n  "agent": { "max_turns": 10 }\n}\n';

test('config edit writes what the editor saved, and makes the file where there was none', async () => {
  const { file, edit, text } = await setUp(null);

  const { out } = await edit(editorWith(better));

  expect(out).toContain(`wrote ${file}`);
  expect(text()).toBe(better);
  expect(readdirSync(dirname(file))).toHaveLength(1);
});

test.each([
  ['is not JSON', '{\n "agent": {},\n}\n', 'not JSON: line 3: expected a key, but found "}"'],
  ['has an unknown key', '{\n "agent": {\n "max_trns": 1 }}', 'did you mean max_turns? (line 3)'],
  ['is empty', '', 'not JSON: line 1: expected a value, but the text ends'],
])('a file that %s is refused with the line, and the old one is kept', async (_, bad, message) => {
  const { file, edit, text } = await setUp(good);

  const out = (await edit(editorWith(bad), 'n\\n')).out.replaceAll(/\r?\n/g, ' ');

  expect(out).toContain(`${file}: `);
  expect(out).toContain(message);
  expect(out).toContain(`${file} is as it was`);
  expect(text()).toBe(good);
  expect(readdirSync(dirname(file))).toHaveLength(1);
});

test('a broken file can be edited again', async () => {
  const { edit, text } = await setUp(good);

  const { out } = await edit(editorWith('{', better), '\\n');

  expect(out).toContain('Edit it again?');
  expect(text()).toBe(better);
});

test('an editor that fails, or changes nothing, changes nothing', async () => {
  const { edit, text, file } = await setUp(good);

  const none = await setUp(null);

  expect((await none.edit('true')).out).toContain(`${none.file} was not written`);
  expect(existsSync(none.file)).toBe(false);
  const failed = await edit('false');
  const same = await edit('true');

  expect(failed.out).toContain('the editor (false) ended with 1, so nothing was done');
  expect(same.out).toContain(`${file} is as it was`);
  expect(text()).toBe(good);
});

test('without a terminal config edit says what to use', async () => {
  const { agent, root } = openProject();

  expect(await agent('config', 'edit')).toMatchObject({
    code: 2,
    err: expect.stringContaining('agent config set <key> <value>'),
  });
  expect(await agent('config', 'get', 'server.port', '--global')).toMatchObject({
    code: 2,
    err: expect.stringContaining('config get does not take --global'),
  });
  expect(existsSync(join(root, '.beads'))).toBe(false);
});

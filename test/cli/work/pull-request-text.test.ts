import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openForgeProject, writing } from '../../support/forge/project.ts';
import { gitIn } from '../../support/git.ts';

/** Agents cannot write below `.agent`. */
const templated = '.agent/pull-request.md';

test('the text of a pull request comes from the template that the branch has', async () => {
  const { root, agent, github } = await openForgeProject(
    [writing('Write a text'), writing('Add a page')],
    { link: 'https://tasks.example/{task_id}' },
  );
  const publish = async (title: string): Promise<string> => {
    const id = (await agent('create', title)).out.trim();
    await agent('engineer', id, '--verify', 'test -e a.txt');
    const { code, err } = await agent('publish', id);
    expect(code, err).toBe(0);
    return id;
  };

  const first = await publish('Write a text');
  mkdirSync(join(root, '.agent'));
  writeFileSync(join(root, templated), 'title: {{title}} for us\n\nBy {{role}}: {{verified}}\n');
  gitIn(root, 'add', templated);
  gitIn(root, 'commit', '--quiet', '-m', 'a template');
  await publish('Add a page');

  expect(github.state.pulls.map(({ title }) => title)).toEqual([
    'Write a text',
    'Add a page for us',
  ]);
  expect(github.state.pulls[0]?.body).toContain('- Verified: `test -e a.txt`\n');
  expect(github.state.pulls[0]?.body).toContain(
    `[How it was made](https://tasks.example/${first})`,
  );
  expect(github.state.pulls[1]?.body).toBe('By engineer: `test -e a.txt`');
});

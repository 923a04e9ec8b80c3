import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../../support/cli.ts';
import { openGitHub } from '../../support/forge/github.ts';
import { gitIn } from '../../support/git.ts';
import { openGitProject } from '../../support/git-project.ts';

interface Listed {
  readonly task_id: string;
  readonly title: string;
  readonly description: string;
  readonly dependencies: readonly string[];
  readonly labels: readonly string[];
  readonly status: string;
  readonly source?: { readonly type: string; readonly url: string; readonly number: number };
}

const openPlan = (options: object = {}) => {
  const project = openProject({ api: { backend: 'scripted' } });
  const at = (name: string) => join(project.root, name);
  const write = (name: string, text: string) => writeFileSync(at(name), text);
  const list = async (): Promise<readonly Listed[]> =>
    JSON.parse((await project.agent('list', '--json')).out);
  const titles = async () => (await list()).map(({ title }) => title).toSorted();
  /** Titles of what a task waits for. */
  const waits = async (title: string) => {
    const all = await list();
    const ids = all.find((each) => each.title === title)?.dependencies ?? [];
    return ids.map((id) => all.find(({ task_id }) => task_id === id)?.title).toSorted();
  };
  return { ...project, ...options, at, write, list, titles, waits };
};

const checklist = `# Shop

- [ ] Sell things
  Money comes in.
  - [ ] Build a cart
    1. [ ] Draw it
  - [x] Buy a domain
  - [ ] Take cards
- [x] Have an idea
  - [ ] Tell it

\`\`\`
- [ ] no item
\`\`\`
See [this](https://example.org).
- [a link](https://example.org)
`;

test('a checklist becomes tasks that wait for what is nested in them, once', async () => {
  const { agent, at, write, titles, waits, list } = openPlan();
  write('todo.md', checklist);

  const made = await agent('import', 'plan', at('todo.md'), '--yes');
  write('todo.md', `${checklist}- [ ] Add a shop window\n`);
  const again = await agent('import', 'plan', at('todo.md'), '--yes');

  expect(made.code, made.err).toBe(0);
  expect(made.err).toContain('2 checked items left out');
  expect(made.out).toContain('5 tasks made');
  expect(again.out).toContain('1 task made, 5 there already');
  expect(await titles()).toEqual([
    'Add a shop window',
    'Build a cart',
    'Draw it',
    'Sell things',
    'Take cards',
    'Tell it',
  ]);
  expect(await waits('Sell things')).toEqual(['Build a cart', 'Take cards']);
  expect(await waits('Build a cart')).toEqual(['Draw it']);
  expect((await list()).find(({ title }) => title === 'Sell things')?.description).toBe(
    'Sell things\n\nMoney comes in.',
  );
});

test.each([
  [
    'tasks.csv',
    'title,description,priority,labels,role,depends_on\nOne,"a\nb",0,"x,y",tester,\nTwo,,,,,One\n',
  ],
  [
    'tasks.json',
    JSON.stringify([
      { title: 'One', description: 'a\nb', priority: 0, labels: ['x', 'y'], role: 'tester' },
      { title: 'Two', depends_on: ['One'] },
    ]),
  ],
])('%s becomes tasks with all fields', async (name, text) => {
  const { agent, at, write, list, waits } = openPlan();
  write(name, text);

  const made = await agent('import', 'plan', at(name), '--yes', '--json');

  expect(made.code, made.err).toBe(0);
  expect(JSON.parse(made.out).items).toMatchObject([{ action: 'make' }, { action: 'make' }]);
  const one = (await list()).find(({ title }) => title === 'One');
  expect(one).toMatchObject({ description: 'a\nb', priority: 0, role: 'tester' });
  expect(one?.labels.toSorted()).toEqual(['role:tester', 'x', 'y']);
  expect(await waits('Two')).toEqual(['One']);
});

test.each([
  [
    'a.md',
    '# A\n- [ ] ok\n- [y] odd\n- [ ]\n',
    ['a.md:3: expected [ ] or [x]', 'a.md:4: the item has no text'],
  ],
  ['b.md', '- [ ] one\n- [ ] one\n', ['b.md:2: the same item as in line 1']],
  ['c.md', 'nothing here\n', ['has no checklist']],
  ['a.csv', 'title,depends_on\nOne,Other\nTwo,bd-none\n', ['a.csv:2: depends on "Other"']],
  [
    'b.csv',
    'title,priority\nOne,9\n"T\nwo",1,2\n',
    ['b.csv:2: priority "9"', 'b.csv:3: has 3 columns'],
  ],
  ['c.csv', 'name\nOne\n', ['c.csv:1: unknown "name"']],
  ['d.csv', 'title\n"One\n', ['d.csv:2: ']],
  ['e.csv', 'title,depends_on\nOne,bd-none\n', ['e.csv:2: depends on bd-none']],
  ['a.json', '[\n {"title": "One"},\n {"title": 2}\n]', ['a.json:3: title: expected text']],
  ['b.json', '[{"title": "One"}\n', ['b.json:2: expected , or ]']],
  [
    'c.json',
    '[{"title": "One", "role": "king", "labels": ["a b"]}]',
    ['role "king"', 'label "a b"'],
  ],
])('%s that is wrong makes nothing, and says in which line: %j', async (name, text, says) => {
  const { agent, at, write, titles } = openPlan();
  write(name, text);

  const refused = await agent('import', 'plan', at(name), '--yes');

  expect(refused.code).toBe(2);
  for (const each of says) expect(refused.err).toContain(each);
  expect(await titles()).toEqual([]);
});

test('a plan is shown at 80 columns, and made when somebody says yes', async () => {
  const { agent, at, typing, write, titles } = openPlan();
  write('todo.md', `${checklist}- [ ] ${'A long title '.repeat(20)}\n`);

  const refused = await agent('import', 'plan', at('todo.md'));
  const denied = await typing(['n'], 'import', 'plan', at('todo.md'));
  const none = await titles();
  const made = await typing(['y'], 'import', 'plan', at('todo.md'));

  expect(refused).toMatchObject({ code: 2 });
  expect(refused.err).toContain('there is no terminal to ask; 6 tasks to make; give --yes');
  expect(denied.out).toContain('nothing was made');
  expect(none).toEqual([]);
  expect(made.out).toContain('6 tasks made');
  for (const line of made.out.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
});

test('standard input is a plan, too', async () => {
  const { shell, titles } = openPlan();

  await shell('printf \'[{"title": "One"}]\' | $AGENT import plan - --yes');
  await shell("printf 'title,role\\nTwo,tester\\n' | $AGENT import plan - --yes");
  await shell("printf '* [ ] Three\\n' | $AGENT import plan - --yes");

  expect(await titles()).toEqual(['One', 'Three', 'Two']);
});

const openIssues = async (scripts: readonly object[] = []) => {
  const project = openGitProject(scripts, {}, { ownServer: true });
  const github = await openGitHub(project.root);
  gitIn(project.root, 'remote', 'add', 'origin', github.remote);
  await project.agent('config', 'set', 'forge.api_url', github.apiUrl);
  await project.agentWith({ GITHUB_TOKEN: github.token }, 'server', 'start');
  const list = async (): Promise<readonly Listed[]> =>
    JSON.parse((await project.agent('list', '--json')).out);
  return { ...project, github, list };
};

test('issues become tasks once, in the order of what blocks them; edits of issues change them', async () => {
  const { agent, github, list } = await openIssues();
  const { person } = github;
  const late = person.issue('Late', 'Blocked by #2', ['agent']);
  const first = person.issue('First \u001b[31m\u202ered', 'text\u0000\u001b]0;x\u0007', [
    'agent',
    'needs work',
  ]);
  person.issue('Other', 'text', ['bug']);

  const made = await agent('import', 'github', '--label', 'agent', '--yes');
  const before = await list();
  person.editIssue(first, { text: 'new text', title: 'First' });
  const shown = await agent('import', 'github', '--label', 'agent');
  const again = await agent('import', 'github', '--label', 'agent', '--yes');
  const nothing = await agent('import', 'github', '--label', 'agent', '--yes');

  expect(made.code, made.err).toBe(0);
  expect(made.out).toContain('2 tasks made');
  const find = (tasks: readonly Listed[], number: number) =>
    tasks.find(({ source }) => source?.number === number);
  expect(find(before, first)).toMatchObject({
    title: 'First red',
    labels: ['agent', 'needs-work'],
    source: { type: 'github', url: `https://forge.example/acme/shop/issues/${first}` },
  });
  expect(find(before, late)?.dependencies).toEqual([find(before, first)?.task_id]);
  expect(shown.err).toContain('give --yes');
  expect(again.out).toContain('0 tasks made, 1 changed, 1 there already');
  expect(nothing.out).toContain('nothing is new');
  const after = await list();
  expect(after).toHaveLength(2);
  expect(find(after, first)).toMatchObject({
    title: 'First',
    description: expect.stringMatching(/^new text\n\n---\nFrom https:\/\/forge.example\/acme/),
  });
  expect((await agent('show', find(after, first)?.task_id ?? '')).out).toContain(
    `https://forge.example/acme/shop/issues/${first}`,
  );
});

test('cycles are told, and left out; a thousand issues and a large one are taken', async () => {
  const { agent, github, list } = await openIssues();
  const { person } = github;
  person.issue('One', 'Blocked by #2', []);
  person.issue('Two', 'Blocked by #1\nBlocked by #5000', []);
  person.issue('Large', 'ä'.repeat(1_000_000), []);
  for (let n = 4; n <= 1_000; n += 1) person.issue(`Issue ${n}`, `- [ ] #${n - 1}`, []);

  const made = await agent('import', 'github', '--yes');

  expect(made.code, made.err).toBe(0);
  expect(made.err).toContain(
    '#2 "Two": a dependency is left out, since it would close the cycle #2 -> #1 -> #2',
  );
  expect(made.err).toContain('#5000, which is no task here');
  expect(made.out).toContain('1000 tasks made');
  expect((await list()).length).toBe(1_000);
}, 120_000);

test.each([
  ['a wrong token', { status: 401 }, 8, 'does not accept the token'],
  ['a limit', { status: 429, headers: { 'retry-after': '60' } }, 6, 'answers nothing until'],
  ['no repository', { status: 404 }, 4, 'is not there, or the token may not see it'],
  ['a failure', { status: 502, times: 9 }, 6, 'try again later'],
])(
  '%s is told, and nothing is made',
  async (_, fault, code, says) => {
    const { agent, github, list } = await openIssues();
    github.person.issue('One', 'text', []);
    github.fault({ match: /issues/, ...fault });

    const refused = await agent('import', 'github', '--yes');

    expect(refused.err).toContain(says);
    expect(refused.code).toBe(code);
    expect(await list()).toEqual([]);
  },
  60_000,
);

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

const quotes = 'put the description in quotes';
test.each<[readonly string[], string, string]>([
  [['create', 'one', 'two', 'three'], '"two" "three"', quotes],
  [['create', 'needs both', '--deps', 'bd-a', 'bd-b'], '"bd-b"', '--deps <id> --deps <id>'],
  [['create', '--deps', 'bd-a', 'bd-b', '--', 'text'], '"text"', quotes],
  [['show', 'bd-a', 'bd-b'], '"bd-b"', 'one task at a time'],
  [['engineer', 'bd-a', 'extra'], '"extra"', 'one task at a time'],
  [['engineer', 'mend', 'it'], '"it"', 'agent engineer "<text>"'],
  [['list', 'extra', 'words'], '"extra" "words"', 'agent list --help'],
  [['server', 'status', '--', 'now'], '"now"', 'agent server --help'],
  [['token', 'rotate', 'again'], '"again"', 'agent token --help'],
  [['dep', 'tree', 'bd-a', 'bd-b'], '"bd-b"', 'one task at a time'],
  [['respond', 'bd-a', 'the', 'second'], '"second"', 'put the answer in quotes'],
])(
  'a word that no command takes is refused and never dropped: %j',
  async (words, extra, instead) => {
    const { agent, root, stateDir } = openProject();

    const ended = await agent(...words);

    expect(ended).toMatchObject({ code: 2, out: '' });
    expect(ended.err).toContain(
      `${words[0] === 'dep' && words[1] === 'tree' ? 'dep tree' : words[0]} does not take ${extra}: `,
    );
    expect(ended.err).toContain(instead);
    expect(existsSync(join(root, '.beads', 'issues.jsonl')) || existsSync(stateDir)).toBe(false);
  },
);

test('extra words are refused with a running server too, and dependencies can be written in three ways', async () => {
  const { agent } = openProject();
  const [one, two] = [
    (await agent('create', 'one')).out.trim(),
    (await agent('create', 'two')).out.trim(),
  ];
  await agent('server', 'start');

  const ways = [[`${one},${two}`], [one, '--deps', two], [one, '--deps', `${two},${one}`]];
  const created = await Promise.all(
    ways.map((way) => agent('create', 'both', '--json', '--deps', ...way)),
  );

  for (const { out } of created)
    expect(JSON.parse(out)).toMatchObject({ dependencies: [one, two] });
  for (const words of [
    ['list', 'extra', '--json'],
    ['show', one, two, '--json'],
  ]) {
    const { code, out } = await agent(...words);
    expect([code, JSON.parse(out)]).toEqual([
      2,
      { error: { code: 'usage', message: expect.any(String) } },
    ]);
  }
});

test.each([[['extra']], [['--server', 'extra']], [['--server', '--', '--port', '0']]])(
  'agent-server %j is refused',
  async (words) => {
    const { server } = openProject();

    expect(await server(...words)).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringContaining(words.at(-2) === '--port' ? '--port' : 'extra'),
    });
  },
);

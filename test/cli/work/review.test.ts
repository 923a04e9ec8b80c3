import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { linesIn } from '../../../src/actors/engine/service/review-task.ts';
import { withComments } from '../../../src/cli/work/work-commands.ts';
import { filesIn } from '../../../web/model/diff.ts';
import { gitIn, makeRepository } from '../../support/git.ts';
import { openGitProject } from '../../support/git-project.ts';

/** A project in git whose engineer writes a file and answers one comment. */
const open = () => {
  const answers = [{ comment: 1, answer: 'It is new now.' }];
  const turns = [
    { calls: [{ tool: 'write', arguments: { path: 'b.txt', content: 'one\ntwo\n' } }] },
    {
      calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'done', answers } }],
    },
  ];
  return openGitProject([{ turns }]);
};

test('a comment on a line sends the work back, and is answered in the diff, in show and in the results', {
  tags: ['slow'],
}, async () => {
  const { agent } = open();
  const id = (await agent('create', 'Add b')).out.trim();
  await agent('engineer', id);

  const wrong = await agent('review', id, '--comment', 'b.txt:9', 'Say new');
  const sent = await agent('review', id, '--comment', 'b.txt:2', 'Say new', '--request-changes');
  await agent('wait', id);
  const [diff, plain, show] = [
    await agent('diff', id, '--comments'),
    await agent('diff', id),
    JSON.parse((await agent('show', id, '--json')).out),
  ];
  const approved = await agent('review', id, '--approve');

  expect(wrong.err).toBe(
    'agent: --comment: b.txt: the changes of attempt 1 do not have line 9; they have its lines 1-2\n',
  );
  expect([sent.code, sent.out]).toEqual([
    0,
    `${id}: 1 comment, sent back; the next attempt goes on with the same branch\nsee: agent logs -f ${id}, agent diff ${id}\n`,
  ]);
  expect(diff.out).toContain(
    '+two\n# comment 1 on b.txt:2 (attempt 2)\n#   Say new\n#   > It is new now.',
  );
  expect(plain.out).not.toContain('# comment');
  expect(show).toMatchObject({ attempt: 2, review: { comments: [{ answer: 'It is new now.' }] } });
  expect(approved.out).toBe(`${id}: 0 comments, approved; take it with: agent merge ${id}\n`);
});

test('a place without a text, two verdicts and comments without a place are usage errors', async () => {
  const { agent } = open();
  const id = (await agent('create', 'Add b')).out.trim();

  const told = [
    await agent('review', id, '--comment', 'b.txt:2'),
    await agent('review', id, '--request-changes', '--approve'),
    await agent('review', id, '--comment', '', 'x'),
    await agent('review', id, '--request-changes'),
    await agent('review', id, '--comment', '../b.txt:1', 'x'),
  ];

  expect(told.map(({ code }) => code)).toEqual([2, 2, 2, 2, 2]);
});

test('comments are below their last line; those on lines that are not shown are above', () => {
  const root = makeRepository();
  const numbers = Array.from({ length: 30 }, (_, at) => `line ${at + 1}`);
  writeFileSync(join(root, 'a b.txt'), numbers.join('\n'));
  gitIn(root, 'add', '.');
  gitIn(root, 'commit', '--quiet', '-m', 'lines');
  const changed = numbers.map((line, at) => (at === 9 ? 'changed' : line));
  writeFileSync(join(root, 'a b.txt'), changed.join('\n'));
  const patch = gitIn(root, 'diff');
  const comment = (id: number, line: number | undefined, end_line?: number) => ({
    ...{ id, attempt: 1, path: 'a b.txt', text: `text ${id}`, open: true },
    ...(line === undefined ? {} : { line }),
    ...(end_line === undefined ? {} : { end_line }),
  });

  const shown = withComments(patch, [
    comment(1, 10),
    comment(2, 8, 11),
    comment(3, 29),
    comment(4, undefined),
  ]).split('\n');

  const after = (line: string) => shown[shown.indexOf(line) + 1];
  expect(shown[0]).toBe('# comment 3 on a b.txt:29 (open)');
  expect(after('+changed')).toBe('# comment 1 on a b.txt:10 (open)');
  expect(after(' line 11')).toBe('# comment 2 on a b.txt:8-11 (open)');
  expect(shown.filter((line) => line.startsWith('# comment 4'))).toHaveLength(1);
  expect(shown.filter((line) => !line.startsWith('#') && line !== '').join('\n')).toBe(
    patch
      .split('\n')
      .filter((line) => line !== '')
      .join('\n'),
  );
});

test.each([
  'tab\t.txt',
  'line\nend.txt',
  'a "quote".txt',
  'bell\u0007\r\u0001.txt',
  'ü 日.txt',
  ' a => b ',
])('a file of the name %j is found in a patch by a review, the diff and the page', (path) => {
  const root = makeRepository();
  writeFileSync(join(root, path), 'one\n');
  gitIn(root, 'add', '.');
  const patch = gitIn(root, '-c', 'core.quotepath=false', 'diff', '--cached');
  const comment = { id: 1, attempt: 1, path, line: 1, text: 'why', open: true };

  expect([...linesIn(patch)]).toEqual([[path, [{ from: 1, to: 1 }]]]);
  expect(withComments(patch, [comment])).toContain('+one\n# comment 1 on');
  expect(filesIn(patch).map((file) => file.path)).toEqual([path]);
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseAgentUrl } from '../../../src/cli/setup/open-url.ts';
import { roles } from '../../../src/machines/task.ts';
import { hostileUrls } from './hostile-urls.ts';

const grammar =
  /^agent:\/\/(task|run\/(engineer|tester|reviewer|architect|product-manager))\/[A-Za-z0-9][A-Za-z0-9_.-]*-[A-Za-z0-9]+(\.[0-9]+)*$/;

test.each(['bd-a1b2', 'bd-a1b2.1', 'bd-a1b2.1.12', 'my_project-7', 'a.b-c-9', 'X-1'])(
  'the task %s can be named',
  (id) => {
    expect(parseAgentUrl(`agent://task/${id}`)).toEqual({ kind: 'task', taskId: id });
  },
);

test.each(roles)('a run by the %s can be named', (role) => {
  expect(parseAgentUrl(`agent://run/${role}/bd-a1b2`)).toEqual({
    kind: 'run',
    role,
    taskId: 'bd-a1b2',
  });
});

test('the list of hostile links is as long as promised', () => {
  expect(new Set(hostileUrls).size).toBe(hostileUrls.length);
  expect(hostileUrls.length).toBeGreaterThanOrEqual(60);
});

test.each(hostileUrls)('%j is not a valid link', (text) => {
  expect(parseAgentUrl(text)).toBeNull();
});

test('a link may be as long as an id, and no longer', () => {
  expect(parseAgentUrl(`agent://task/bd-${'a'.repeat(125)}`)).not.toBeNull();
  expect(parseAgentUrl(`agent://task/bd-${'a'.repeat(126)}`)).toBeNull();
});

const pieces = [
  'agent:',
  '/',
  '//',
  'task',
  'run',
  ...roles,
  'bd',
  '-',
  'a1b2',
  '.1',
  '..',
  ':',
  '@',
  '%',
  '?',
  '\n',
  'A',
];
const nearMisses = fc.oneof(
  fc.string(),
  fc.array(fc.constantFrom(...pieces), { maxLength: 9 }).map((parts) => parts.join('')),
  fc
    .tuple(fc.constantFrom('task', ...roles.map((role) => `run/${role}`)), fc.string())
    .map((x) => `agent://${x.join('/')}`),
  fc.stringMatching(grammar),
  fc
    .tuple(fc.stringMatching(grammar), fc.nat(), fc.string({ maxLength: 2 }))
    .map(
      ([link, at, more]) =>
        link.slice(0, at % (link.length + 1)) + more + link.slice(at % (link.length + 1)),
    ),
);

test('every accepted link matches the grammar and has the parts of its text', () => {
  fc.assert(
    fc.property(nearMisses, (text) => {
      const link = parseAgentUrl(text);
      const fits =
        grammar.test(text) &&
        !text.includes('..') &&
        text.length <= 256 &&
        (text.split('/').at(-1) ?? '').length <= 128;
      expect(link !== null).toBe(fits);
      if (link === null) return;
      const kind = link.kind === 'task' ? 'task' : `run/${link.role}`;
      expect(`agent://${kind}/${link.taskId}`).toBe(text);
    }),
    { numRuns: 3_000 },
  );
});

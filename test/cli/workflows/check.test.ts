import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../../support/cli.ts';

const ours = ['feature', 'research'] as const;
const valid = `name: own
version: 1.0.0
description: Mine.
phases:
  - number: 1
    name: one
    steps:
      - id: a
        by: engineer
        title: A
        task: Do it.
`;

const check = async (text: string, ...words: readonly string[]) => {
  const project = openProject();
  const file = join(project.root, 'own.yml');
  writeFileSync(file, text);
  const ended = await project.agent('workflow', 'check', 'own.yml', ...words);
  return { ...ended, out: ended.out.replaceAll(file, 'own.yml') };
};

test.each(ours)('every phase of the shipped workflow %s can end', async (name) => {
  const { code, out } = await openProject().agent('workflow', 'check', name);

  expect(code).toBe(0);
  expect(out).toMatch(
    new RegExp(`^.*/configs/workflows/${name}\\.yml: ${name} 1\\.0\\.0: each of`),
  );
});

test('a file of your own is checked, and says how many states were looked at', async () => {
  expect(await check(valid)).toMatchObject({
    code: 0,
    out: 'own.yml: own 1.0.0: its phase can end (4 states looked at)\n',
  });
});

test.each([
  [
    'an unknown role',
    valid.replace('engineer', 'enginer'),
    'line 9: step a: by: expected engineer, tester, reviewer, architect, product-manager or person, got "enginer"',
  ],
  [
    'an unknown key',
    `${valid}        tytle: x\n`,
    'line 12: step a: tytle: is not known here; known are id, by, title,',
  ],
  [
    'a missing key',
    valid.replace('        title: A\n', ''),
    'line 8: step a: title: is missing; expected text',
  ],
  [
    'a step that stands twice',
    `${valid}${valid.slice(valid.indexOf('      - id'))}`,
    'line 12: step a: id: is a a second time',
  ],
  [
    'a path out of the project',
    `${valid}        leaves: [../x]\n`,
    'line 12: step a: leaves: entry 1: must be a path inside the project',
  ],
  [
    'a check of no kind',
    `${valid}    gates: [{ name: good, checks: [{ check: coverge, of: a }] }]\n`,
    'line 12: gate good, check coverge: check: is "coverge"; must be one of artifacts, verdict,',
  ],
  [
    'a check that lacks a key',
    `${valid}    gates: [{ name: good, checks: [{ check: coverage, of: a, reports: [x] }] }]\n`,
    'line 12: gate good, check coverage: minimum: is missing; expected a number from 0 to 100\n',
  ],
  [
    'a file that a person must leave',
    `${valid.replace('engineer', 'person')}        leaves: [x]\n`,
    'line 12: step a: leaves: is not for a step of a person, which leaves nothing that can be checked',
  ],
  ['a key that stands twice', `${valid}name: x\n`, 'line 12: this key stands twice\n'],
  ['no keys', 'just text\n', 'line 1: has no keys; such a file begins with name: <name>\n'],
  ['nothing', '', 'line 1: has no keys'],
  ['broken YAML', valid.replace('name: own', 'name: [own'), 'line 2: not YAML'],
  [
    'an alias that could grow',
    `${valid}x: &a [b]\ny: [*a, *a]\n`,
    'line 13: *a is an alias; write out what it stands for\n',
  ],
  [
    'a second document',
    `${valid}---\nname: x\n`,
    'line 12: a second document begins after ---; a file has one workflow\n',
  ],
  ['lists in lists', `${valid}x: ${'['.repeat(20_000)}\n`, 'line 12: is nested too deeply\n'],
])('%s is named with its line', async (_, text, problem) => {
  const { code, out } = await check(text);

  expect(code).toBe(1);
  expect(out).toContain(`own.yml: ${problem}`);
});

test('a dead end is printed with the shortest way to it, and as JSON', async () => {
  const text = `${valid}        needs: [b]\n`;

  const { code, out } = await check(text);
  const json = JSON.parse((await check(text, '--json')).out);

  expect(code).toBe(1);
  expect(out).toBe(
    'own.yml: line 12: phase 1 cannot end: its step a needs b, which is no step of this phase\n',
  );
  expect(json).toMatchObject({ ok: false, dead_end: { line: 12, phase: 1, way: [] } });
});

const needing = (id: string, need: string): string => `      - id: ${id}
        by: engineer
        title: B
        task: Do it.
        needs: [${need}]
`;

test.each([
  [
    'steps that wait for each other, not those that wait for them',
    `${valid}${needing('d', 'c')}${needing('c', 'b')}${needing('b', 'c')}`,
    'line 21: phase 1 cannot end: its steps c, b wait for each other',
  ],
  [
    'a repeated step that is not there',
    `${valid}    repeat:\n      - a\n      - x\n`,
    'line 14: phase 1 cannot end: it repeats x, which is no step of this phase',
  ],
  [
    'a check that can never pass',
    `${valid}    gates:\n      - name: g\n        checks:\n          - { check: verdict, of: a }\n`,
    'line 15: phase 1 cannot end: its check verdict reads the results of a, which end with no verdict',
  ],
])('a dead end is named with its line: %s', async (_, text, problem) => {
  const { code, out } = await check(text);

  expect([code, out]).toEqual([1, `own.yml: ${problem}\n`]);
});

test('a file that is not there is a problem', async () => {
  const { code, out } = await openProject().agent('workflow', 'check', 'no.yml');

  expect([code, out]).toEqual([1, expect.stringContaining('no.yml: does not exist')]);
});

test('the first of many problems are named', { tags: ['slow'] }, async () => {
  const { code, out } = await check('a: b: c\n'.repeat(30));

  expect(code).toBe(1);
  expect(out.trim().split('\n').length).toBeLessThanOrEqual(21);
  expect(out).toMatch(/and \d+ more\n$/);
});

test('a workflow with too many combinations of its optional steps is refused, with what to do', {
  tags: ['slow'],
}, async () => {
  const ids = Array.from({ length: 18 }, (_, n) => `s${n}`);
  const task = 'by: engineer, title: A, task: Do it.';
  const phases = ids.map(
    (id, n) => `  - number: ${n}
    name: p
    steps: [{ id: ${id}, ${task}, when: it is so, leaves: [docs/${id}.md] }]`,
  );
  const checks = ids.map((id) => `{ check: artifacts, of: ${id} }`).join(', ');
  const last = `  - number: 18
    name: p
    steps: [{ id: last, ${task} }]
    gates: [{ name: g, checks: [${checks}] }]`;
  const head = valid.slice(0, valid.indexOf('  - number'));

  const { code, out } = await check(`${head}${phases.join('\n')}\n${last}\n`);

  expect(code).toBe(1);
  expect(out).toContain('it is not proved that every phase can end');
  expect(out).toContain('divide the workflow');
});

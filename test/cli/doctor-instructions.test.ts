import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { gitIn } from '../support/git.ts';
import { openGitProject } from '../support/git-project.ts';

type Project = Pick<ReturnType<typeof openProject>, 'agent' | 'root'>;

const put = (root: string, path: string, text: string | Buffer): void => {
  mkdirSync(join(root, path, '..'), { recursive: true });
  writeFileSync(join(root, path), text);
};
const instructionsCheck = async ({ agent }: Project): Promise<unknown> => {
  const { checks } = JSON.parse((await agent('doctor', '--json')).out);
  return checks.find(({ check }: { check: string }) => check === 'instructions');
};
const check = 'instructions';

test('doctor lists the instructions that the built-in agent reads, from the commit', async () => {
  const project = openGitProject([]);
  const none = await instructionsCheck(project);
  put(project.root, 'AGENTS.md', 'x\n'.repeat(20_000));
  put(project.root, 'CLAUDE.md', 'not read');
  put(project.root, 'lib/CLAUDE.md', 'a');
  put(project.root, '.agents/skills/deploy/SKILL.md', '---\ndescription: Deploys.\n---\n');
  const uncommitted = await instructionsCheck(project);
  gitIn(project.root, 'add', '--all');
  gitIn(project.root, 'commit', '--quiet', '-m', 'files');

  expect(none).toEqual({
    check,
    status: 'ok',
    detail: 'no AGENTS.md, CLAUDE.md or .agents/skills',
  });
  expect(uncommitted).toEqual(none);
  expect(await instructionsCheck(project)).toEqual({
    check,
    status: 'note',
    detail:
      'the built-in agent reads AGENTS.md; for files beside or below them lib/CLAUDE.md; the skills deploy; of 39999 bytes an agent is shown 32768',
  });
});

test('doctor says that nothing is read in a folder that agents share', async () => {
  const project = openProject();
  put(project.root, 'AGENTS.md', 'Of an agent.');

  expect(await instructionsCheck(project)).toEqual({
    check,
    status: 'note',
    detail:
      'AGENTS.md and skills are not read: with workspace.mode shared agents can change them, and nobody looks',
  });
});

test('doctor says why nothing is read where work is merged by itself', async () => {
  const project = openGitProject([], { merge: 'squash' });

  expect(await instructionsCheck(project)).toEqual({
    check,
    status: 'note',
    detail:
      'AGENTS.md and skills are not read: with workspace.merge squash agents can change them, and nobody looks',
  });
});

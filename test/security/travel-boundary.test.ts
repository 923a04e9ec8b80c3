import { execFileSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { serveRepository } from '../support/git-http.ts';
import { describeUnless, noStrace } from '../support/needs.ts';
import { temporaryFolder } from '../support/temporary.ts';
import { driveWorkspaces } from './support/driven-workspace.ts';
import { git, hostileSettings, makePlan, put } from './support/plan.ts';

const execPath = execFileSync('git', ['--exec-path'], { encoding: 'utf8' }).trim();
const hooks = [
  ...['pre-push', 'reference-transaction', 'post-checkout', 'pre-auto-gc', 'post-merge'],
  ...['pre-receive', 'update', 'post-receive', 'post-update', 'push-to-checkout', 'proc-receive'],
];

const plantHooks = (folder: string, trap: string): void => {
  mkdirSync(folder, { recursive: true });
  for (const hook of hooks) cpSync(trap, join(folder, hook));
};

/** Two clones whose settings and hooks run the trap, and a bare repository between them. */
const openHostile = (isBareHostile: boolean) => {
  const plan = makePlan();
  const { project, gitDir, trap } = plan;
  const bare = join(temporaryFolder(), 'work.git');
  git(project, ['clone', '--quiet', '--bare', '--no-hardlinks', project, bare]);
  const other = join(temporaryFolder(), 'project');
  git(project, ['clone', '--quiet', '--no-hardlinks', project, other]);
  const redirects = `[url "ext::${trap} "]\n\tinsteadOf = http\n[remote "origin"]\n\tvcs = trap\n\treceivepack = ${trap}\n\tuploadpack = ${trap}\n`;
  for (const dir of [gitDir, join(other, '.git'), ...(isBareHostile ? [bare] : [])]) {
    appendFileSync(join(dir, 'config'), hostileSettings(trap) + redirects);
    plantHooks(join(dir, 'hooks'), trap);
  }
  return { plan, bare, other };
};

describeUnless(noStrace)('work of attempts goes through a repository', () => {
  test.each([
    { kind: 'folder', isHostile: true, programs: [] },
    // The programs of a repository behind an address are those of whoever serves it.
    { kind: 'network', isHostile: false, programs: ['git-remote-http'] },
  ])(
    'and git starts no other program, and goes nowhere else: $kind',
    {
      tags: ['slow'],
      timeout: 120_000,
    },
    async ({ kind, isHostile, programs }) => {
      const { plan, bare, other } = openHostile(isHostile);
      const address = kind === 'folder' ? bare : await serveRepository(bare);
      const driver = driveWorkspaces();
      const one = driver.of(plan.project, plan.state, { address, server: 'one' });
      const two = driver.of(other, temporaryFolder(), { address, server: 'two' });
      const opened = await one.open(1);
      if ('error' in opened) throw new Error(opened.error);
      const { root } = opened.value;
      put(root, {
        'a.txt': 'changed\n',
        '.gitattributes': '* filter=x diff=x\n',
        'x.txt': 'x\n',
      });

      expect(await one.keep(1, 'act:1:a')).toEqual({});
      expect(await two.take(1)).toEqual({ value: { has: 'step', step: 'act:1:a', notes: [] } });
      const there = await two.open(1);
      if ('error' in there) throw new Error(there.error);
      expect(readFileSync(join(there.value.root, 'a.txt'), 'utf8')).toBe('changed\n');
      writeFileSync(join(there.value.root, 'a.txt'), 'again\n');
      expect(await two.keep(1, 'act:2:b')).toEqual({});
      expect(await two.save(1)).toMatchObject({ value: { files: 3 } });

      const recorded = await driver.end();
      const started = recorded.filter((each) => each.kind === 'start').map(({ what }) => what);
      const allowed = ['/usr/bin/git', ...['git', ...programs].map((name) => join(execPath, name))];
      expect([...new Set(started)].filter((program) => !allowed.includes(program))).toEqual([]);
      const connected = recorded.filter((each) => each.kind === 'connect');
      const port = kind === 'folder' ? null : new URL(address).port;
      const elsewhere = connected.filter(
        ({ what }) => port === null || !what.includes(`htons(${port})`),
      );
      expect(elsewhere.map(({ what }) => what)).toEqual([]);
      expect(connected.length > 0).toBe(kind === 'network');
      expect(plan.marks()).toBe('');
      expect(git(bare, ['for-each-ref', '--format=%(refname)', 'refs/heads/agent'])).toEqual(
        expect.stringMatching(/^refs\/heads\/agent\/bd-a1\/1\.[0-9a-f]{12}$/),
      );
    },
  );
});

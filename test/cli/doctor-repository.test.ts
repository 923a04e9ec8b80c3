import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { gitIn, makeRepository } from '../support/git.ts';
import { serveRepository } from '../support/git-http.ts';
import { describeUnless } from '../support/needs.ts';
import { freshAddress, noPostgres } from '../support/postgres.ts';
import { temporaryFolder } from '../support/temporary.ts';

const makeBare = (): string => {
  const bare = join(temporaryFolder(), 'work.git');
  gitIn(temporaryFolder(), 'clone', '--quiet', '--bare', '--no-hardlinks', makeRepository(), bare);
  return bare;
};

/** The check of `agent doctor` for this repository; with `store`, servers share tasks. */
const checkOf = async (repository: string, store: string | null) => {
  const project = openProject({
    workspace: { mode: 'worktree', repository },
    ...(store === null ? {} : { store: { url: 'DATABASE_URL' } }),
  });
  for (const args of [
    ['init', '-q'],
    ['commit', '-q', '--allow-empty', '-m', 'first'],
  ])
    gitIn(project.root, ...args);
  const env = store === null ? {} : { DATABASE_URL: store };
  const { out, err, code } = await project.agentWith(env, 'doctor', '--json');
  if (code === 78) return { code, err };
  const { checks } = JSON.parse(out);
  return checks.find(({ check }: { check: string }) => check === 'repository');
};

test.each([
  ['git://host/work.git', 'git:// is not used'],
  ['https://amy:secret@host/work.git', 'it holds a password'],
  ['work.git', 'is no address of a repository'],
])('an address that no server uses is refused with what to do: %s', async (address, why) => {
  const { code, err } = await checkOf(address, null);

  expect(code).toBe(78);
  expect(err).toContain('workspace.repository');
  expect(err).toContain(why);
});

test('a server that shares no store does not use it', async () => {
  expect(await checkOf(makeBare(), null)).toMatchObject({
    status: 'note',
    detail: expect.stringContaining('this server shares no store'),
  });
});

describeUnless(noPostgres)('the common repository', () => {
  test.each(['folder', 'network'])(
    'is asked whether it can be read and written: %s',
    async (kind) => {
      const bare = makeBare();
      const address = kind === 'folder' ? bare : await serveRepository(bare);
      const store = await freshAddress();
      expect(await checkOf(address, store)).toMatchObject({ status: 'ok' });
      expect(gitIn(bare, 'for-each-ref', '--format=%(refname)')).toBe('refs/heads/main');

      if (kind === 'network') gitIn(bare, 'config', 'http.receivepack', 'false');
      else rmSync(join(bare, 'objects/pack'), { recursive: true });
      expect(await checkOf(address, store)).toMatchObject({
        status: 'problem',
        detail: expect.stringMatching(
          /cannot be written: .*right to push|cannot be written; give .*chown/,
        ),
      });

      rmSync(join(bare, 'HEAD'));
      expect(await checkOf(address, store)).toMatchObject({
        status: 'problem',
        detail: expect.stringMatching(
          /make one: git clone --bare|cannot be read: .*must work without/,
        ),
      });
    },
  );
});

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { parseScript } from '../../../src/actors/model/script.ts';
import { createScriptedModel } from '../../../src/actors/model/scripted.ts';
import { gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { noSshKeygen, testUnless } from '../../support/needs.ts';
import { complete, landingDefaults, type Running, startSystem } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const scripts = ['One', 'Two'].map((title) => ({
  title,
  turns: [
    { calls: [{ tool: 'bash', arguments: { command: `echo ${title} > ${title}` } }] },
    { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'done' } }] },
  ],
}));

const start = (config: string): { home: string; running: Promise<Running> } => {
  const home = temporaryFolder();
  const root = makeRepository();
  writeFileSync(join(home, '.gitconfig'), config.replaceAll('HOME', home));
  // What a repository says may come from an agent.
  gitIn(root, 'config', 'gpg.ssh.program', '/bin/false');
  gitIn(root, 'config', 'user.signingKey', '/nowhere');
  const running = startSystem({
    root,
    workspace: (project, stateDir) =>
      worktreesOf(project, join(stateDir, 'worktrees'), [], {
        userEnv: { HOME: home, PATH: process.env['PATH'] },
      }),
    model: createScriptedModel(parseScript({ scripts })),
    options: { landing: { ...landingDefaults, verify: ['true'], sign: true } },
  });
  return { home, running };
};

const mergeAll = ({ service }: Running) =>
  service.mergeMany({ taskIds: [], all: true }, AbortSignal.timeout(60_000));

testUnless(noSshKeygen)(
  'what lands is signed with the key and the name of the user, and with no setting of the repository',
  async () => {
    const { home, running } = start(
      '[user]\n\tname = Ada\n\temail = ada@example.com\n\tsigningKey = HOME/key\n[gpg]\n\tformat = ssh\n',
    );
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(home, 'key')]);
    const allowed = join(home, 'allowed');
    writeFileSync(allowed, `ada@example.com ${readFileSync(join(home, 'key.pub'), 'utf8')}`);
    const system = await running;
    for (const title of ['One', 'Two']) await complete(system, title);

    const { landed } = await mergeAll(system);

    expect(landed).toHaveLength(2);
    const file = `gpg.ssh.allowedSignersFile=${allowed}`;
    const format = '--format=%G? %GS %cn %an';
    const said = gitIn(
      system.root,
      '-c',
      'gpg.ssh.program=ssh-keygen',
      '-c',
      file,
      'log',
      '-2',
      format,
    );
    expect(said.split('\n')).toEqual([
      'G ada@example.com Ada agent-server (engineer)',
      'G ada@example.com Ada agent-server (engineer)',
    ]);
  },
);

testUnless(noSshKeygen)('what cannot be signed does not land, and says why', async () => {
  const { running } = start('[user]\n\tsigningKey = HOME/none\n[gpg]\n\tformat = ssh\n');
  const system = await running;
  await complete(system, 'One');
  const before = gitIn(system.root, 'rev-parse', 'main');

  const { refused } = await mergeAll(system);

  expect(refused).toMatchObject([
    {
      code: 'merge_conflict',
      message: expect.stringContaining(
        'could not be signed (merge.sign), which agent doctor tries',
      ),
    },
  ]);
  expect(refused[0]?.message).toMatch(/none/);
  expect(gitIn(system.root, 'rev-parse', 'main')).toBe(before);
});

import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { noSshKeygen, testUnless } from '../support/needs.ts';

const files: readonly (readonly [string, string, string])[] = [
  ['package.json', '{"scripts":{"test":"node --test"}}', 'npm test'],
  ['Makefile', 'all:\n\ntest: all\n\t./run\n', 'make test'],
  ['pyproject.toml', '[tool.pytest.ini_options]\n', 'python3 -m pytest'],
  ['package.json', '{"scripts":{"test":"echo \\"Error: no test specified\\""}}', '<your tests>'],
  ['package.json', 'not JSON', '<your tests>'],
];

test('doctor proposes the test command that it sees, and names the one that is set', async () => {
  const { agent, root } = openProject();
  const detail = async (): Promise<{ status: string; detail: string }> => {
    const { checks } = JSON.parse((await agent('doctor', '--json')).out);
    return checks.find(({ check }: { check: string }) => check === 'merge');
  };
  for (const [name, text, command] of files) {
    writeFileSync(join(root, name), text);
    expect(await detail()).toMatchObject({
      status: 'note',
      detail: expect.stringMatching(/to test all of it: /),
    });
    expect((await detail()).detail).toContain(
      `agent config set merge.verify '${JSON.stringify([command])}'`,
    );
    rmSync(join(root, name));
  }
  await agent('config', 'set', 'merge.verify', '["make check"]');

  expect(await detail()).toMatchObject({ status: 'ok', detail: 'tested with make check' });
});

testUnless(noSshKeygen)('doctor tries to sign where merges are signed', async () => {
  const { agentWith, root } = openProject({ merge: { sign: true, verify: ['true'] } });
  const home = join(root, '..', `home-${process.pid}`);
  mkdirSync(home);
  onTestFinished(() => rmSync(home, { recursive: true }));
  const key = join(home, 'key');
  const config = `[user]\n\tname = Ada\n\temail = ada@localhost\n\tsigningKey = ${key}\n[gpg]\n\tformat = ssh\n`;
  writeFileSync(join(home, '.gitconfig'), config);
  const check = async () => {
    const { checks } = JSON.parse((await agentWith({ HOME: home }, 'doctor', '--json')).out);
    return checks.find((each: { check: string }) => each.check === 'merge');
  };

  expect(await check()).toMatchObject({
    status: 'problem',
    detail: expect.stringMatching(/^your git signs no commit \(merge.sign\): .*key/s),
  });
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  expect(await check()).toMatchObject({ status: 'ok' });
});

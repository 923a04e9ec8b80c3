import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { shippedFile } from '../../../src/cli/roles/read-project-roles.ts';
import { openProject } from '../../support/cli.ts';

const openWith = (config: object = {}, ownServer = false) => {
  const project = openProject(
    { sandbox: { mode: 'auto' }, api: { backend: 'scripted' }, ...config },
    { ownServer },
  );
  const folder = join(project.root, '.agent', 'roles');
  mkdirSync(folder, { recursive: true });
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
  return { ...project, write };
};

test("agent roles --json prints each role's values and their sources, without a server", async () => {
  const project = openWith({ roles: { tester: { file: 'tester.yml', max_turns: 9 } } });
  const own = join(project.configFile, '..', 'tester.yml');
  writeFileSync(own, 'tools: [read, bash, finish]\nverify: [npm test]\n');
  project.write('tester.yml', 'tools: [read, finish]\n');
  project.write('reviewer.yml', 'model: dear\n');
  project.write('janitor.yml', '');

  const { code, out } = await project.agent('roles', '--json');
  const { roles, ignored } = JSON.parse(out);

  expect(code).toBe(0);
  expect(project.serverFile()).toBeNull();
  expect(roles.map(({ role }: { role: string }) => role)).toHaveLength(5);
  expect(roles[1]).toMatchObject({
    role: 'tester',
    tools: ['read', 'finish'],
    model: 'scripted',
    limits: { timeout_seconds: 600, max_turns: 9, max_tokens_total: 1_000_000, max_cost_usd: null },
    verify: ['npm test'],
    sources: [
      { kind: 'shipped', path: shippedFile('tester').replace('/src/', '/dist/') },
      { kind: 'user', path: own },
      { kind: 'config', path: project.configFile },
    ],
    project: { path: '.agent/roles/tester.yml', narrowed: ['without bash'], ignored: null },
  });
  expect(roles[2].project).toEqual({
    path: '.agent/roles/reviewer.yml',
    narrowed: [],
    ignored: expect.stringMatching(/^model: cannot be set here/),
  });
  expect(roles[0].project).toBeNull();
  expect(ignored).toMatchObject([{ path: '.agent/roles/janitor.yml' }]);
});

test('agent roles and doctor show what the project narrows and what is ignored', async () => {
  const project = openWith({ roles: { engineer: { network: true }, tester: { network: true } } });
  project.write('tester.yml', 'network: false\ntools: [read, finish]\nnotes: |\n  Be kind.\n');
  project.write('reviewer.yml', 'limits: { max_turns: 1000 }\n');

  const { out } = await project.agent('roles');
  const doctor = await project.agent('doctor');

  expect(out).toMatch(
    /^tester: unit and integration tests\n {2}tools {7}read, finish\n {2}model {7}scripted$/m,
  );
  expect(out).toMatch(
    /project {5}\.agent\/roles\/tester\.yml narrows: without write, .*; notes\n {2}it notes {4}Be kind\./,
  );
  expect(out).toMatch(
    /reviewer\.yml is ignored: limits\.max_turns: 1000 is above the 50 that your configuration allows/,
  );
  expect(out.match(/^ {2}network {5}the whole network of this machine/gm)).toHaveLength(1);
  expect(doctor.out).toMatch(/note +network +commands of engineer reach the whole network of/);
  expect(doctor.out).toMatch(
    /ok +roles +\.agent\/roles\/tester\.yml narrows the tester: without write/,
  );
  expect(doctor.out).toMatch(
    /note +roles +\.agent\/roles\/reviewer\.yml is ignored: limits\.max_turns/,
  );
});

test('a server starts with a bad project file, warns, and reads role files again on SIGHUP', async () => {
  const project = openWith({ roles: { tester: { file: 'tester.yml' } } }, true);
  const own = join(project.configFile, '..', 'tester.yml');
  writeFileSync(own, 'limits: { timeout_seconds: 500 }\n');
  project.write('tester.yml', 'limits: { timeout_seconds: 900 }\n');
  await project.agent('server', 'start');
  const { pid, url } = project.serverFile();
  const token = readFileSync(join(project.stateDir, 'token'), 'utf8').trim();
  const log = (): string => readFileSync(join(project.stateDir, 'server.log'), 'utf8');
  const timeout = async (): Promise<string | undefined> => {
    const response = await fetch(`${url}/a2a/discovery`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const { agents } = (await response.json()) as { agents: { role: string; timeout: string }[] };
    return agents.find(({ role }) => role === 'tester')?.timeout;
  };
  const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
    while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 20));
  };
  const first = await timeout();
  expect(log()).toContain('tester.yml is ignored: limits.timeout_seconds: 900 is above the 500');

  project.write('tester.yml', 'limits: { timeout_seconds: 60 }\n');
  process.kill(pid, 'SIGHUP');
  await until(async () => (await timeout()) !== first);
  expect(await timeout()).toBe('1min');

  writeFileSync(own, 'limits: { timeout_seconds: never }\n');
  process.kill(pid, 'SIGHUP');
  await until(() => log().includes('the previous one stays'));
  expect(log()).toMatch(/tester\.yml: limits\.timeout_seconds: /);
  expect(await timeout()).toBe('1min');
});

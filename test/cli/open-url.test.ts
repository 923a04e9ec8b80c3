import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { notLinux, testUnless } from '../support/needs.ts';
import { temporaryFolder } from '../support/temporary.ts';
import { hostileUrls } from './handler/hostile-urls.ts';

test('an invalid link ends with 2 and one line, and changes nothing', async () => {
  const { agent, stateDir, root } = openProject();
  const urls = hostileUrls.filter((url) => !url.includes('\0'));
  const words = [
    ...urls.map((url) => ['--', url]),
    [],
    ['agent://task/bd-a1b2'],
    ['--', 'agent://task/bd-a1', 'x'],
  ];

  for (let from = 0; from < words.length; from += 8) {
    const ended = await Promise.all(
      words.slice(from, from + 8).map((each) => agent('open-url', ...each)),
    );
    for (const { code, out, err } of ended) {
      expect({ code, out }).toEqual({ code: 2, out: '' });
      expect(err).toBe(
        'agent: not a valid link; valid are agent://task/<id> and agent://run/<role>/<id>\n',
      );
    }
  }
  expect(existsSync(stateDir)).toBe(false);
  expect(readdirSync(root)).toEqual(['.git']);
});

test('a link shows the task, says how to run it, and starts nothing', async () => {
  const { agent, root } = openProject();
  const id = (await agent('create', 'Look at me')).out.trim();
  const without = await agent('open-url', '--', `agent://task/${id}`);
  await agent('server', 'start');

  const shown = await agent('open-url', '--', `agent://task/${id}`);
  const asked = await agent('open-url', '--', `agent://run/tester/${id}`);
  const unknown = await agent('open-url', '--', 'agent://task/bd-none');

  expect(without).toMatchObject({
    code: 3,
    err: expect.stringContaining(`no running server knows task ${id}`),
  });
  expect(shown).toMatchObject({ code: 0, out: expect.stringContaining('Look at me') });
  expect(shown.out).toContain('opened by a link; nothing was started');
  expect(asked.out).toContain(`to run it: agent tester ${id} --project ${JSON.stringify(root)}`);
  expect(unknown.code).toBe(3);
  expect(JSON.parse((await agent('show', id, '--json')).out)).toMatchObject({
    status: 'queued',
    attempt: 0,
  });
});

const banner = async (
  project: ReturnType<typeof openProject>,
  env: NodeJS.ProcessEnv,
): Promise<string> => {
  const server = project.start('agent-server', ['--server'], env);
  let out = '';
  for await (const chunk of server.stdout ?? []) {
    out += chunk;
    if (out.includes('agent:// links')) break;
  }
  await project.stopServer();
  return /agent:\/\/ links +(.*)/.exec(out)?.[1] ?? '';
};

testUnless(notLinux)(
  'the first start registers agent:// links, the second does not; without a desktop a note says so',
  { tags: ['slow'] },
  async () => {
    const home = temporaryFolder();
    const desktop = {
      HOME: home,
      DISPLAY: ':0',
      XDG_DATA_HOME: '',
      XDG_CONFIG_HOME: '',
      SUDO_UID: '',
      SUDO_USER: '',
    };
    const project = openProject();

    expect(await banner(project, {})).toMatch(/^not registered: this machine has no desktop/);
    expect(await banner(project, desktop)).toBe('registered: agent:// links now open here');
    const entry = readFileSync(
      join(home, '.local/share/applications/agent-task-server.desktop'),
      'utf8',
    );
    expect(entry).toMatch(/^Exec=.*agent\.js"? open-url -- %u$/m);
    expect(await banner(project, desktop)).toBe('already registered: agent:// links open here');
    expect(await project.agentWith(desktop, 'unregister-handler')).toMatchObject({ code: 0 });
    expect(existsSync(join(home, '.local/share/applications/agent-task-server.desktop'))).toBe(
      false,
    );
    writeFileSync(
      project.configFile,
      JSON.stringify({ server: { port: 0, register_protocol_handler: false } }),
    );
    expect(await banner(project, desktop)).toMatch(
      /^not registered: server.register_protocol_handler is false/,
    );
  },
);

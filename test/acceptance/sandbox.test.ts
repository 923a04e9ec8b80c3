import { execFileSync } from 'node:child_process';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { childEnvironment } from '../../src/actors/process/run-command.ts';
import { createBubblewrap } from '../../src/actors/sandbox/bubblewrap.ts';
import { refusedCallNumber } from '../../src/actors/sandbox/seccomp.ts';
import { bashTool } from '../../src/actors/tools/bash.ts';
import { createWorkbench } from '../actors/agent/workbench.ts';
import { openProject } from '../support/cli.ts';
import { slowestOf, whileHealthIsAsked } from '../support/health.ts';
import { isLong } from '../support/long.ts';
import { describeUnless, noSandbox, notRoot, testUnless } from '../support/needs.ts';
import { bash, finish, startServer, untilStatus } from '../support/running.ts';
import { temporaryFolder } from '../support/temporary.ts';

const sandbox = createBubblewrap({ readPaths: [], network: false });

/** The output of a command in the sandbox, through the bash tool. */
const say = async (command: string, timeout_seconds = 20) => {
  const { context, root } = await createWorkbench();
  const env = childEnvironment(process.env);
  return {
    root,
    ...(await bashTool.run({ command, timeout_seconds }, { ...context, env, sandbox })),
  };
};

describeUnless(noSandbox)('in the sandbox', () => {
  // Under the user of the test run they are tested in actors/sandbox.test.ts.
  testUnless(notRoot)(
    'A18 each probe of doctor holds for an ordinary user too',
    { tags: ['slow', 'root'] },
    async () => {
      const project = openProject(
        { api: { backend: 'scripted' }, sandbox: { mode: 'auto' } },
        { ownServer: true },
      );
      const { root, configFile, stateDir } = project;
      const [home, temporary] = [temporaryFolder(), temporaryFolder()];
      const other = 65_534;
      const own = [root, dirname(configFile), dirname(stateDir), home, temporary];
      execFileSync('chown', ['-R', `${other}:${other}`, ...own]);
      const asOther = ['setpriv', `--reuid=${other}`, `--regid=${other}`, '--clear-groups'];

      const doctor = project.start(
        'agent',
        ['doctor', '--sandbox', '--json'],
        { HOME: home, TMPDIR: temporary },
        asOther,
      );
      const { out, code } = await project.collect(doctor);

      const probes: readonly { held: boolean }[] = JSON.parse(out).probes;
      expect(probes.filter(({ held }) => !held)).toEqual([]);
      expect([probes.length >= 30, code]).toEqual([true, 0]);
    },
  );

  test('A18 the filter refuses letters for another terminal, also where there is a terminal', async () => {
    const put = `perl -e 'my $x = "x"; ioctl(STDIN, 0x5412, $x); print $!{EPERM} ? "refused" : "tried"'`;

    expect(refusedCallNumber('ptrace')).not.toBe(-1);
    expect((await say(put)).text).toMatch(/^refused/);
  });

  test("A18 keys in the user's home and other projects are invisible", async () => {
    const home = temporaryFolder();
    const project = temporaryFolder();
    mkdirSync(join(home, '.ssh'));
    writeFileSync(join(home, '.ssh', 'id_ed25519'), 'canary');
    writeFileSync(join(project, 'secret'), 'canary');
    vi.stubEnv('HOME', home);
    onTestFinished(() => void vi.unstubAllEnvs());

    const { text } = await say(
      `cat ${home}/.ssh/id_ed25519 ~/.ssh/id_ed25519 ${project}/secret; ls -A ~ ${dirname(home)}`,
    );

    expect(text).not.toContain('canary');
    expect(text.match(/No such file/g)?.length).toBeGreaterThanOrEqual(3);
  });

  test('A19 a command can read no key of the server in any environment', async () => {
    for (const name of [
      'OPENAI_API_KEY',
      'ANTHROPIC_API_KEY',
      'AGENT_SERVER_TOKEN',
      'AWS_SECRET_ACCESS_KEY',
    ])
      vi.stubEnv(name, 'sk-canary');
    onTestFinished(() => void vi.unstubAllEnvs());

    const { text } = await say(
      `env; cat /proc/self/environ /proc/1/environ /proc/[0-9]*/environ | tr '\\0' '\\n'`,
    );

    expect(text).toContain('PATH=');
    expect(text).not.toContain('canary');
  });

  const large = {
    ...(isLong ? { 'into one file': 'head -c 5000000000 /dev/zero > big' } : {}),
    'behind a hole of one file': 'dd if=/dev/zero of=big bs=1 count=1 seek=5000000000',
    'into a temporary file': 'head -c 5000000000 /dev/zero > /tmp/big',
  };
  test.each(Object.entries(large))(
    'A26 writing five GB %s stops at a limit',
    async (_, command) => {
      const { ok, root } = await say(command, 60);

      expect(ok).toBe(false);
      expect(statSync(join(root, 'big'), { throwIfNoEntry: false })?.size ?? 0).toBeLessThanOrEqual(
        1024 ** 3,
      );
    },
  );

  const greedy = {
    'a fork bomb': 'bash -c "f() { f & f & wait; }; f"',
    'processors that spin': 'for i in 1 2 3 4; do sh -c "while :; do :; done" & done; wait',
  };
  test.each(Object.entries(greedy))(
    'A26 %s is contained, and the server answers meanwhile',
    async (_, command) => {
      const running = await startServer({
        turns: [bash(command, isLong ? 10 : 1), bash('echo still here'), finish()],
        sandbox,
      });
      const { task_id: id } = await running.service.create({ description: 'a task' });

      const health = await whileHealthIsAsked(running.base, async () => {
        await running.service.execute({ task: id, role: 'engineer', options: {} });
        await untilStatus(running, id, 'complete', 'failed');
      });

      expect(await running.service.status(id)).toMatchObject({ status: 'complete' });
      expect(slowestOf(health, 0.99)).toBeLessThan(isLong ? 600 : 3_000);
    },
    60_000,
  );
});

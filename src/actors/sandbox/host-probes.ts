import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { QueueMember } from '../../machines/merge-queue/merge-queue-context.ts';
import type { AttemptInput, TaskId } from '../../machines/task.ts';
import { childEnvironment } from '../process/run-command.ts';
import type { Workspace } from '../workspace/port.ts';
import { chooseWorkspace } from '../workspace/worktrees/select-workspace.ts';
import type { Sandbox } from './port.ts';
import { runSandboxed } from './run-sandboxed.ts';
import type { SandboxProbe } from './self-test.ts';

const ranText = 'the probe ran';

/**
 * Leaves work behind that makes git, or the next program there, run a program of the work itself.
 */
const plant = [
  'echo changed > a.txt; mkdir -p lib .vscode; printf "#!/bin/sh\\necho ran > $MARK\\ncat\\n" > trap; chmod +x trap',
  'cp -r .git lib/.git 2> /dev/null || mkdir -p lib/.git/objects lib/.git/refs; echo "ref: refs/heads/x" > lib/.git/HEAD',
  'printf "[core]\\n\\tbare = false\\n\\tfsmonitor = $PWD/trap\\n[filter \\"x\\"]\\n\\tclean = $PWD/trap\\n" > lib/.git/config',
  'echo "* filter=x" > .gitattributes; cp lib/.git/config .git/config; echo b > lib/b.txt; ln -s "$OTHER" away',
  'echo "{}" > .mcp.json; echo "{}" > .vscode/tasks.json',
].join('\n');

const taskId = 'bd-probe' as TaskId;
const probeAttempt = (number: number): AttemptInput => ({
  taskId,
  attempt: number,
  role: 'engineer',
  options: {},
});

const namesBelow = (folder: string): string =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort().join('\n');

const makeProject = (folder: string) => {
  const [project, other] = [join(folder, 'project'), join(folder, 'other')];
  for (const each of [project, other]) mkdirSync(each);
  writeFileSync(join(project, 'a.txt'), 'as it was\n');
  writeFileSync(join(other, 'secret'), 'canary');
  return { project, other, mark: join(other, 'mark') };
};

const runPlant = async (
  sandbox: Sandbox,
  workspace: Workspace,
  facts: Readonly<Record<string, string>>,
) => {
  const { root, readable, git } = await workspace.open(probeAttempt(1));
  const result = await runSandboxed(sandbox, {
    root,
    readable,
    git,
    network: false,
    argv: ['/bin/sh', '-c', `echo ${ranText}\n${plant}`] as const,
    env: { ...childEnvironment(process.env), ...facts },
    timeoutMs: 20_000,
    signal: new AbortController().signal,
    headBytes: 1_000,
    tailBytes: 1_000,
  });
  return (
    !('refusal' in result) &&
    result.output.startsWith(ranText) &&
    existsSync(join(root, 'lib', 'b.txt'))
  );
};

/**
 * Tests what happens on the host after a command: git saves, shows and merges its work, and the
 * next attempt begins.
 */
export const runHostProbes = async (sandbox: Sandbox): Promise<readonly SandboxProbe[]> => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-probe-')));
  const { project, other, mark } = makeProject(folder);
  try {
    const workspace = await chooseWorkspace({
      mode: 'worktree',
      projectRoot: project,
      folder: join(folder, 'worktrees'),
      copies: [],
      environment: childEnvironment(process.env),
    });
    const tried = await runPlant(sandbox, workspace, { OTHER: other, MARK: mark });
    const patch = (await workspace.diff(taskId, 1))?.patch ?? '';
    const saved = await workspace.save(probeAttempt(1), 'Work');
    const shown = (await workspace.diff(taskId, 1))?.patch ?? '';
    const member: QueueMember = {
      taskId,
      attempt: 1,
      title: 'Work',
      style: 'squash',
      verify: false,
      by: 'person',
      priority: 0,
      createdAt: '',
      after: [],
      tickets: [],
    };
    const train = await workspace.build([member]);
    if (train.cars.length > 0)
      await workspace.land({ ...train, members: [member], commands: null });
    const next = await workspace.open(probeAttempt(2));
    const later = namesBelow(next.root);
    const isOutsideSafe =
      readdirSync(other).join() === 'secret' &&
      readFileSync(join(other, 'secret'), 'utf8') === 'canary';
    const probe = (name: string, isHeld: boolean): SandboxProbe => ({
      name,
      held: tried && isHeld,
      tried,
    });
    return [
      probe('have git on the host run a program of its work', saved !== null && !existsSync(mark)),
      probe(
        'have git on the host read or write through a link',
        !`${patch}${shown}`.includes('canary') && isOutsideSafe,
      ),
      probe(
        'put links out of the project into the folder of the user',
        !readdirSync(project).includes('away'),
      ),
      probe(
        'leave the next attempt what other programs obey',
        !/\.mcp\.json|tasks\.json|lib\/\.git/.test(later),
      ),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

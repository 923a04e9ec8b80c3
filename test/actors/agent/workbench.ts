import { mkdirSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createOutputFile } from '../../../src/actors/process/output-file.ts';
import { childEnvironment, groupRuns } from '../../../src/actors/process/run-command.ts';
import { createNoSandbox } from '../../../src/actors/sandbox/run-sandboxed.ts';
import type { ToolContext } from '../../../src/actors/tools/port.ts';

/** A workspace in a temporary folder, with a folder beside it that no tool may reach. */
export interface Workbench {
  readonly root: string;
  readonly outside: string;
  readonly context: ToolContext;
  readonly emitted: readonly string[];
  readonly abort: AbortController;
  put(path: string, content: string | Buffer): Promise<void>;
  get(path: string): Promise<string>;
  files(): Promise<readonly string[]>;
}

export const createWorkbench = async (): Promise<Workbench> => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'agent-')));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const [root, outside] = [join(folder, 'root'), join(folder, 'outside')];
  await Promise.all([mkdir(root), mkdir(outside)]);

  const emitted: string[] = [];
  const abort = new AbortController();
  const emit = (chunk: string) => {
    emitted.push(chunk);
  };
  return {
    root,
    outside,
    emitted,
    abort,
    context: {
      root,
      readable: [],
      signal: abort.signal,
      emit,
      env: childEnvironment(process.env),
      sandbox: createNoSandbox(),
      network: false,
      openLog: (fromBytes) =>
        createOutputFile({
          folder: join(folder, 'logs'),
          makeFolder: () => mkdirSync(join(folder, 'logs'), { recursive: true }),
          prefix: '1-',
          name: '1-1.log',
          redact: (text) => text,
          fromBytes,
        }),
    },
    put: async (path, content) => {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), content);
    },
    get: (path) => readFile(join(root, path), 'utf8'),
    files: async () => (await readdir(root, { recursive: true })).sort(),
  };
};

/** False for a zombie. */
export const isAlive = async (pid: number): Promise<boolean> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  if (process.platform !== 'linux') return groupRuns(pid);
  return stat !== null && !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2));
};

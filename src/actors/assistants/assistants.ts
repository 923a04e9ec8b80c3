import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { execa } from 'execa';
import type { Assistant as AssistantName } from '../../machines/agent-context.ts';
import type { Assistant } from './port.ts';

/** The assistants that can do work here. */
export interface Assistants {
  /** As the user configured it, its program with its place; null for a command that is not configured. */
  of(name: AssistantName): Assistant | null;
  /** Why it cannot be used, or null. */
  problem(name: AssistantName): string | null;
  /** The first one that is logged in, as was found out last, or null. */
  loggedIn(): AssistantName | null;
  /** Asks again who is logged in, unless somebody is or that was asked a moment ago. */
  lookAgain(): Promise<void>;
  /** What is passed on to it beside the environment of every child process. */
  environmentOf(assistant: Assistant): Readonly<Record<string, string>>;
  /** Whether they run in the sandbox; otherwise as the user, by the user's word. */
  held(): boolean;
}

export interface AssistantsOptions {
  readonly codex: Assistant;
  readonly claude: Assistant;
  readonly command: Assistant | null;
  /** Who may be used because it is logged in, in this order. */
  readonly candidates: readonly ('codex' | 'claude')[];
  /** The environment of every child process, which has the PATH. */
  readonly environment: Readonly<Record<string, string>>;
  /** Credentials and other variables of the user, of which each assistant gets its own. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Names of variables that every assistant gets. */
  readonly passed: readonly string[];
  readonly held: boolean;
  readonly now: () => number;
}

/** What says by its exit code whether it is logged in. */
const statusCommands = { codex: ['login', 'status'], claude: ['auth', 'status'] } as const;
/** A key that stands for a login, of which the program does not speak. */
const loginKeys = { codex: 'CODEX_API_KEY', claude: null } as const;
const statusMs = 15_000;
const askAgainMs = 10_000;

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
};

/** Where a program is, or null; a relative entry of PATH could be the project's own folder and is passed over. */
const findProgram = (program: string, path: string): string | null => {
  if (isAbsolute(program)) return isExecutable(program) ? program : null;
  const folder = path.split(delimiter).find((each) => isAbsolute(each) && isExecutable(join(each, program)));
  return folder === undefined ? null : join(folder, program);
};

const programName = (assistant: Assistant): string =>
  assistant.argv({ model: null, session: null, promptFile: '', taskId: '', role: '', moneyLeftUsd: null })[0];

export const createAssistants = (options: AssistantsOptions): Assistants => {
  const { candidates, environment, secrets, passed, now } = options;
  let found: AssistantName | null = null;
  let askedAt: number | null = null;

  const findFor = (assistant: Assistant) => findProgram(programName(assistant), environment['PATH'] ?? '');
  const environmentOf = ({ variables }: Assistant) =>
    Object.fromEntries(Object.entries(secrets).filter(([name]) => [...variables, ...passed].includes(name)));
  const problem = (name: AssistantName): string | null => {
    const assistant = options[name];
    if (assistant === null) return 'api.command is not configured';
    const program = programName(assistant);
    if (findFor(assistant) !== null) return null;
    return isAbsolute(program) ? `${program} is not a program` : `${program} is not on PATH`;
  };
  const isLoggedIn = async (name: 'codex' | 'claude'): Promise<boolean> => {
    const assistant = options[name];
    const key = loginKeys[name];
    if (key !== null && secrets[key] !== undefined) return true;
    const { exitCode } = await execa(findFor(assistant) ?? programName(assistant), statusCommands[name], {
      env: { ...environment, ...environmentOf(assistant) },
      extendEnv: false,
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'ignore',
      // Not the project, whose files it might obey.
      cwd: '/',
      reject: false,
      timeout: statusMs,
      killSignal: 'SIGKILL',
    });
    return exitCode === 0;
  };

  return {
    of: (name) => {
      const assistant = options[name];
      const path = assistant === null ? null : findFor(assistant);
      if (assistant === null || path === null) return assistant;
      return { ...assistant, argv: (start) => [path, ...assistant.argv(start).slice(1)] };
    },
    problem,
    loggedIn: () => (found === null || problem(found) !== null ? null : found),
    lookAgain: async () => {
      if (found !== null || (askedAt !== null && now() - askedAt < askAgainMs)) return;
      askedAt = now();
      for (const name of candidates)
        if (problem(name) === null && (await isLoggedIn(name))) {
          found = name;
          return;
        }
    },
    environmentOf,
    held: () => options.held,
  };
};

import { isAbsolute } from 'node:path';
import { execa } from 'execa';
import type { AssistantName } from '../../machines/agent/agent-context.ts';
import { findProgram } from '../process/find-program.ts';
import type { Assistant } from './port.ts';

/** Exit code 0 means logged in. */
const statusCommands = { codex: ['login', 'status'], claude: ['auth', 'status'] } as const;
export type LoginAssistant = keyof typeof statusCommands;
/** A variable that counts as a login, which the status command does not report. */
const loginKeys: Readonly<Record<LoginAssistant, string | null>> = {
  codex: 'CODEX_API_KEY',
  claude: null,
};
const statusMs = 15_000;
const checkAgainMs = 10_000;

export interface Assistants {
  /** Has the full path of its program; null for a command that is not configured. */
  of(name: AssistantName): Assistant | null;
  problem(name: AssistantName): string | null;
  loggedIn(): AssistantName | null;
  /** Checks logins again, unless one was found or the last check is less than 10 s ago. */
  checkLogins(): Promise<void>;
  environmentOf(assistant: Assistant): Readonly<Record<string, string>>;
  /** False when the user configured assistants to run outside the sandbox. */
  sandboxed(): boolean;
}

export interface AssistantsOptions {
  readonly codex: Assistant;
  readonly claude: Assistant;
  readonly acp: Assistant | null;
  readonly command: Assistant | null;
  readonly candidates: readonly LoginAssistant[];
  /** The environment of every child process, with PATH. */
  readonly environment: Readonly<Record<string, string>>;
  /** Credentials and other variables of the user; each assistant gets only its own. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly passedVariables: readonly string[];
  readonly sandboxed: boolean;
  readonly now: () => number;
}

const programName = (assistant: Assistant): string =>
  assistant.argv({
    model: null,
    session: null,
    promptFile: '',
    taskId: '',
    role: '',
    moneyLeftUsd: null,
  })[0];

export const createAssistants = (options: AssistantsOptions): Assistants => {
  const { candidates, environment, secrets, passedVariables, now } = options;
  let found: AssistantName | null = null;
  let checkedAt: number | null = null;

  const findFor = (assistant: Assistant) =>
    findProgram(programName(assistant), environment['PATH'] ?? '');
  const environmentOf = ({ variables, settings }: Assistant) => {
    const given = Object.fromEntries(
      Object.entries(secrets).filter(([name]) => [...variables, ...passedVariables].includes(name)),
    );
    return { ...given, ...settings?.({ ...environment, ...given }) };
  };
  const problem = (name: AssistantName): string | null => {
    const assistant = options[name];
    if (assistant === null)
      return `${name === 'acp' ? 'api.acp.command' : 'api.command'} is not configured`;
    const program = programName(assistant);
    if (findFor(assistant) !== null) return null;
    return isAbsolute(program) ? `${program} is not a program` : `${program} is not on PATH`;
  };
  const isLoggedIn = async (name: LoginAssistant): Promise<boolean> => {
    const assistant = options[name];
    const key = loginKeys[name];
    if (key !== null && secrets[key] !== undefined) return true;
    const { exitCode } = await execa(
      findFor(assistant) ?? programName(assistant),
      statusCommands[name],
      {
        env: { ...environment, ...environmentOf(assistant) },
        extendEnv: false,
        stdin: 'ignore',
        stdout: 'ignore',
        stderr: 'ignore',
        // Not the project: the program might obey its files.
        cwd: '/',
        reject: false,
        timeout: statusMs,
        killSignal: 'SIGKILL',
      },
    );
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
    checkLogins: async () => {
      if (found !== null || (checkedAt !== null && now() - checkedAt < checkAgainMs)) return;
      checkedAt = now();
      for (const name of candidates)
        if (problem(name) === null && (await isLoggedIn(name))) {
          found = name;
          return;
        }
    },
    environmentOf,
    sandboxed: () => options.sandboxed,
  };
};

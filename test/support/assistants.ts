import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createAcp } from '../../src/actors/assistants/acp/acp.ts';
import {
  type Assistants,
  type AssistantsOptions,
  createAssistants,
} from '../../src/actors/assistants/assistants.ts';
import { createClaude } from '../../src/actors/assistants/claude.ts';
import { createCodex } from '../../src/actors/assistants/codex.ts';
import { createCommandAssistant } from '../../src/actors/assistants/command.ts';
import { childEnvironment } from '../../src/actors/process/run-command.ts';

export const fakeProgram = (name: 'codex' | 'claude' | 'acp' | 'command'): string =>
  fileURLToPath(new URL(`./fake-assistants/${name}.mjs`, import.meta.url));

/** Fake assistants, or the programs of a test. */
export const fakeAssistants = (more: Partial<AssistantsOptions> = {}): Assistants =>
  createAssistants({
    codex: createCodex({ path: fakeProgram('codex') }),
    claude: createClaude({ path: fakeProgram('claude') }),
    acp: createAcp([fakeProgram('acp')], { initializeMs: 2_000, sessionMs: 2_000 }),
    command: createCommandAssistant([
      fakeProgram('command'),
      '--prompt',
      '{prompt_file}',
      '--for',
      '{role}/{task_id}',
    ]),
    candidates: ['codex', 'claude'],
    environment: childEnvironment(process.env),
    secrets: {},
    passedVariables: [],
    sandboxed: true,
    now: () => performance.now(),
    ...more,
  });

export interface FakeRun {
  readonly argv: readonly string[];
  readonly prompt: string;
  readonly env: Readonly<Record<string, string>>;
  readonly id: string;
  /** What the file of `--mcp-config` holds; null without one. */
  readonly servers?: unknown;
}

/** The starts of the fakes in a workspace, oldest first. */
export const runsIn = (root: string): readonly FakeRun[] => {
  try {
    return readFileSync(join(root, 'runs.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as FakeRun);
  } catch {
    return [];
  }
};

/** Only our own loop. */
export const noAssistants: Assistants = {
  of: () => null,
  problem: (name) => `${name} is not configured`,
  loggedIn: () => null,
  checkLogins: async () => {},
  environmentOf: () => ({}),
  sandboxed: () => true,
};

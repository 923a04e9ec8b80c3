import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { whyUnsigned } from '../../actors/workspace/git/signing.ts';
import { isJsonObject } from '../../machines/json.ts';
import type { Config } from '../config/schema/config-schema.ts';
import type { Check } from './backend-checks.ts';

/** `npm init` writes it. */
const noTest = 'no test specified';

const hasNpmTest = (text: string): boolean => {
  try {
    const parsed: unknown = JSON.parse(text);
    const scripts = isJsonObject(parsed) ? parsed['scripts'] : null;
    const test = isJsonObject(scripts) ? scripts['test'] : null;
    return typeof test === 'string' && !test.includes(noTest);
  } catch {
    return false;
  }
};

/** A file at the top of a project, and the command that tests such a project. */
const known: readonly (readonly [string, (text: string) => boolean, string])[] = [
  ['package.json', hasNpmTest, 'npm test'],
  ['Makefile', (text) => /^(test|check)\s*:/m.test(text), 'make test'],
  ['pyproject.toml', (text) => text.includes('pytest'), 'python3 -m pytest'],
  ['Cargo.toml', () => true, 'cargo test'],
  ['go.mod', () => true, 'go test ./...'],
];

/** The command that this project seems to be tested with; null: none is seen. */
const testCommandOf = async (root: string): Promise<string | null> => {
  for (const [file, fits, command] of known) {
    const text = await readFile(join(root, file), 'utf8').catch(() => null);
    if (text !== null && fits(text)) return command;
  }
  return null;
};

/** Says how merges are tested, and proposes a command where they are not. */
export const mergeCheck = async (
  root: string,
  { merge }: Config,
  env: NodeJS.ProcessEnv,
): Promise<Check> => {
  const { verify } = merge;
  const why = merge.sign ? await whyUnsigned('git', env) : null;
  if (why !== null)
    return {
      check: 'merge',
      status: 'problem',
      detail: `your git signs no commit (merge.sign): ${why}; set user.signingKey in your own git configuration, or agent config set merge.sign false`,
    };
  if (verify.length > 0)
    return { check: 'merge', status: 'ok', detail: `tested with ${verify.join(', ')}` };
  const command = (await testCommandOf(root)) ?? '<your tests>';
  const set = `agent config set merge.verify '${JSON.stringify([command])}'`;
  return {
    check: 'merge',
    status: 'note',
    detail: `what lands on your branch is tested only with a task's own --verify; to test all of it: ${set}`,
  };
};

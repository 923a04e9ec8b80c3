import { resolve } from 'node:path';
import { readRegular } from '../../actors/files/regular-file.ts';
import { describeRefusal, type Right, refusal } from '../../machines/errors.ts';
import { isJsonObject, textIn } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
import { CallError } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { findServer } from '../client/find-server.ts';
import { getJson } from '../client/http-request.ts';
import { errorInAnswer } from '../client/transport.ts';
import { UsageError } from '../words/usage-error.ts';

const bytesAtMost = 4_096;
const tokenForm = /^[A-Za-z0-9_-]{1,256}$/;
const askMs = 10_000;

/** The token of `--token-file` or AGENT_TOKEN; undefined: the command acts as the owner. @throws UsageError, without the token */
export const givenToken = (
  file: string | undefined,
  { cwd, env }: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): string | undefined => {
  const read = (path: string): string => {
    try {
      return readRegular(resolve(cwd, path), bytesAtMost);
    } catch (cause) {
      throw new UsageError(`--token-file ${path} cannot be read: ${messageOf(cause)}`);
    }
  };
  const text = (file === undefined ? (env['AGENT_TOKEN'] ?? '') : read(file)).trim();
  const from = file === undefined ? 'AGENT_TOKEN' : `--token-file ${file}`;
  if (text === '' && file === undefined) return undefined;
  if (tokenForm.test(text)) return text;
  throw new UsageError(`${from} holds no token: letters, digits, - and _ alone`);
};

/**
 * Commands that the server does not see are refused here, by the right that the server says the token
 * has. @throws CallError forbidden, unauthorized
 */
export const requireRight = async (
  { project, connection }: CommandContext,
  needs: Right,
): Promise<void> => {
  const { holds } = await import('../../http/people/rights.ts');
  await connection.server();
  const address = await findServer(project);
  const found = address === null ? null : await getJson(address, '/page/session', askMs);
  const failure = errorInAnswer(found);
  if (failure !== null) throw failure;
  const name = textIn(found, 'name') ?? '';
  const rights = isJsonObject(found) ? textIn(found, 'rights') : null;
  if (rights !== null && holds(rights, needs)) return;
  const facts = { needs, name, rights: rights ?? 'none' };
  throw new CallError('forbidden', describeRefusal(refusal('forbidden', facts)), facts);
};

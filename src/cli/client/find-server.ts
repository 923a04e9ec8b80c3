import { createHmac, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { hasCode } from '../../actors/files/error-code.ts';
import { isAlive } from '../../actors/process/pid.ts';
import { isJsonObject, textIn } from '../../machines/json.ts';
import { type Project, requireOwnServer, stateFiles } from '../config/places/project.ts';
import { tokenFileIn } from '../server/secrets/token-file.ts';
import { readServerFile, type ServerFile } from '../server/server-file.ts';
import { CallError } from './client.ts';
import { getJson, NoAnswerError } from './http-request.ts';
import type { Address } from './transport.ts';

const probeMs = 3_000;
const probesAtMost = 3;
const probePauseMs = 50;

const silent = ({ url, pid }: ServerFile, log: string): CallError =>
  new CallError(
    'server_silent',
    `the server of this project (pid ${pid}, ${url}) runs, but has not answered for ${probeMs / 1_000} s; try again, look into its log ${log}, or stop it with: agent server stop`,
    { pid, url },
  );

export const isSilent = (error: unknown): boolean =>
  error instanceof CallError && error.code === 'server_silent';

/**
 * Checks that the listener knows our token before we send it: another program may have taken the
 * port. @throws NoAnswerError
 */
const proofOf = async (url: string, token: string, tries = 1): Promise<Address | null> => {
  const challenge = randomBytes(16).toString('base64url');
  const { hostname, port } = new URL(url);
  const expected = createHmac('sha256', token)
    .update(`${challenge} ${hostname.replace(/^\[|\]$/g, '')}:${port}`)
    .digest('base64url');
  try {
    const health = await getJson({ url, token: '' }, `/health?challenge=${challenge}`, probeMs);
    if (textIn(health, 'proof') !== expected) return null;
    const checks = isJsonObject(health) ? health['checks'] : undefined;
    const check = isJsonObject(checks) ? checks['configuration'] : undefined;
    return { url, token, refusesConfig: textIn(check, 'status') === 'failing' };
  } catch (error) {
    if (error instanceof NoAnswerError) throw error;
    // A connection that was cut says nothing; nobody listens where it is refused.
    if (tries >= probesAtMost || hasCode(error, 'ECONNREFUSED')) return null;
    await delay(probePauseMs);
    return proofOf(url, token, tries + 1);
  }
};

const proven = async (stateDir: string, file: ServerFile): Promise<Address | null> => {
  const { url, pid } = file;
  const files = stateFiles(stateDir);
  const token = tokenFileIn(stateDir, file.token_file).readAtStart();
  try {
    return await proofOf(url, token);
  } catch (error) {
    if (!(error instanceof NoAnswerError)) throw error;
    if (isAlive(pid)) throw silent(file, files.log);
    return null;
  }
};

/** @throws CallError when the server runs and does not answer */
export const serverIn = async (stateDir: string): Promise<Address | null> => {
  const file = readServerFile(stateFiles(stateDir).server);
  return file === null ? null : proven(stateDir, file);
};

/** The address with the token that the command acts with. */
export const asGiven = (address: Address, { token }: Pick<Project, 'token'>): Address =>
  token === undefined ? address : { ...address, token };

/**
 * Null when none runs. @throws UsageError when the state folder belongs to another project,
 * CallError when the server runs and does not answer
 */
export const findServer = async (project: Project): Promise<Address | null> => {
  const file = readServerFile(stateFiles(project.stateDir).server);
  if (file === null) return null;
  const found = await proven(project.stateDir, file);
  if (found !== null) requireOwnServer(project, file);
  return found === null ? null : asGiven(found, project);
};

/** Says that the limits of before still hold, and why the newest configuration was refused. */
export const refusedConfigOf = async (address: Address): Promise<string> => {
  const told = await getJson(address, '/surroundings', probeMs).catch(() => null);
  const why = textIn(told, 'config_refused') ?? 'its log says why: agent server logs';
  return `the server refused its new configuration, and goes on with the one before: ${why}`;
};

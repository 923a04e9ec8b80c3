import { createHmac, randomBytes } from 'node:crypto';
import { type Project, requireOwnServer, stateFiles } from '../config/project.ts';
import { readToken } from '../server/private-files.ts';
import { readServerFile } from '../server/server-file.ts';
import { type Address, getJson } from './http-request.ts';
import { textIn } from './json.ts';

const probeMs = 2_000;

/**
 * Checks that the listener knows our token before we send it: another program may have taken the
 * port.
 */
const provesItself = async (url: string, token: string): Promise<boolean> => {
  const challenge = randomBytes(16).toString('base64url');
  const { hostname, port } = new URL(url);
  const expected = createHmac('sha256', token)
    .update(`${challenge} ${hostname.replace(/^\[|\]$/g, '')}:${port}`)
    .digest('base64url');
  try {
    return (
      textIn(
        await getJson({ url, token: '' }, `/health?challenge=${challenge}`, probeMs),
        'proof',
      ) === expected
    );
  } catch {
    return false;
  }
};

const proven = async (stateDir: string, url: string): Promise<Address | null> => {
  const token = readToken(stateFiles(stateDir).token);
  return (await provesItself(url, token)) ? { url, token } : null;
};

export const serverIn = async (stateDir: string): Promise<Address | null> => {
  const file = readServerFile(stateFiles(stateDir).server);
  return file === null ? null : proven(stateDir, file.url);
};

/** Null when none runs. @throws UsageError when the state folder belongs to another project */
export const findServer = async (project: Project): Promise<Address | null> => {
  const file = readServerFile(stateFiles(project.stateDir).server);
  if (file === null) return null;
  const found = await proven(project.stateDir, file.url);
  if (found !== null) requireOwnServer(project, file);
  return found;
};

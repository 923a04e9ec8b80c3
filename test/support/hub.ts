import { randomUUID, type webcrypto } from 'node:crypto';
import { request } from 'node:http';
import { join } from 'node:path';
import type { openProject } from './cli.ts';
import { type AtEnd, temporaryFolder } from './temporary.ts';

/** Two projects of one person, and the real hub, which is stopped at the end. */
export const openHub = (
  atEnd: AtEnd,
  projects: readonly ReturnType<typeof openProject>[],
  more: NodeJS.ProcessEnv = {},
) => {
  const home = temporaryFolder(atEnd);
  const env = { ...more, HOME: home };
  const [first] = projects;
  if (first === undefined) throw new Error('name a project');
  const hub = (...words: string[]) => first.agentWith(env, 'hub', ...words);
  atEnd(async () => void (await hub('stop')));
  return {
    env,
    hub,
    folder: join(home, '.local', 'state', 'agent-task-server', 'hub'),
    agentIn: (at: number, ...words: string[]) => {
      const project = projects[at];
      if (project === undefined) throw new Error(`there is no project ${at}`);
      return project.agentWith(env, ...words);
    },
    /** The one-time address of a project's page at the hub. */
    address: async (at: number, ...words: string[]) => {
      const { out, err } = await (projects[at] ?? first).agentWith(
        env,
        'open',
        '--print',
        ...words,
      );
      if (!out.includes('#c=')) throw new Error(err);
      return out.trim();
    },
  };
};

export interface Got {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
}

/** A request with exactly these headers. */
export const ask = (
  url: string,
  {
    method = 'GET',
    headers = {},
    body = '',
  }: {
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string | readonly string[]>>;
    readonly body?: string;
  } = {},
): Promise<Got> =>
  new Promise((resolve, reject) => {
    const { hostname, port, pathname, search, host } = new URL(url);
    const options = { host: hostname, port, path: `${pathname}${search}`, method, agent: false };
    const sent = request({ ...options, headers: { host, ...headers } }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (part) => {
        text += part;
      });
      answer.once('end', () =>
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }),
      );
      answer.once('error', reject);
    });
    sent.once('error', reject);
    sent.end(body);
  });

const base64url = (bytes: ArrayBuffer): string => Buffer.from(bytes).toString('base64url');

/** What the page does to sign in, step by step, so that a test can do one of them wrongly. */
export const createBrowserKey = async () => {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };
  const { privateKey, publicKey } = await crypto.subtle.generateKey(algorithm, false, [
    'sign',
    'verify',
  ]);
  const json = { 'content-type': 'application/json', 'user-agent': `test ${randomUUID()}` };
  const post = (url: string, body: object) =>
    ask(url, { method: 'POST', headers: json, body: JSON.stringify(body) });
  const publicText = base64url(await crypto.subtle.exportKey('spki', publicKey));
  return {
    register: async (origin: string, code: string): Promise<string> => {
      const got = await post(`${origin}/hub/keys`, { code, public_key: publicText });
      return got.status === 200 ? JSON.parse(got.text).id : got.text;
    },
    nonce: async (origin: string): Promise<string> =>
      JSON.parse((await post(`${origin}/hub/nonces`, {})).text).nonce,
    /** `named`: the origin in the text that is signed. */
    sign: async (named: string, id: string, nonce: string): Promise<string> => {
      const text = new TextEncoder().encode(`agent hub login\n${named}\n${id}\n${nonce}`);
      const how: webcrypto.EcdsaParams = { name: 'ECDSA', hash: 'SHA-256' };
      return base64url(await crypto.subtle.sign(how, privateKey, text));
    },
    tokenFor: (origin: string, id: string, nonce: string, signature: string) =>
      post(`${origin}/hub/tokens`, { id, nonce, signature }),
  };
};

/** Signs in as a browser does. @returns the token of a tab */
export const signIn = async (address: string) => {
  const { origin, hash } = new URL(address);
  const key = await createBrowserKey();
  const id = await key.register(origin, /#c=([\w-]+)/.exec(hash)?.[1] ?? '');
  const nonce = await key.nonce(origin);
  const got = await key.tokenFor(origin, id, nonce, await key.sign(origin, id, nonce));
  return { id, key, token: String(JSON.parse(got.text).token) };
};

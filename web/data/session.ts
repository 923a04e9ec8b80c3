import { signal } from '@preact/signals';

export type Session =
  | { readonly state: 'checking' }
  | { readonly state: 'out'; readonly message: string | null }
  | { readonly state: 'in'; readonly project: string; readonly version: string };

export const session = signal<Session>({ state: 'checking' });

const key = 'agent-task-server.session';

/** Null when there is none; then requests have no token, which `server.auth: none` accepts. */
const storedToken = (): string | null => sessionStorage.getItem(key);

export const authorization = (): Readonly<Record<string, string>> => {
  const token = storedToken();
  return token === null ? {} : { authorization: `Bearer ${token}` };
};

/** The first message stays: an answer that comes late knows less. */
export const signOutHere = (message: string | null): void => {
  sessionStorage.removeItem(key);
  if (session.value.state !== 'out') session.value = { state: 'out', message };
};

const messageIn = async (response: Response): Promise<string> => {
  const body = (await response.json().catch(() => null)) as { error?: { message?: string } } | null;
  return body?.error?.message ?? `the server answered ${response.status}`;
};

/** @returns why the code does not work, or null */
const exchange = async (code: string): Promise<string | null> => {
  const response = await fetch('/page/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  });
  if (!response.ok) return messageIn(response);
  const { token } = (await response.json()) as { token: string };
  sessionStorage.setItem(key, token);
  return null;
};

const check = async (refusal: string | null): Promise<void> => {
  const response = await fetch('/page/session', { headers: authorization() });
  if (!response.ok) return signOutHere(refusal);
  const { project, version } = (await response.json()) as { project: string; version: string };
  session.value = { state: 'in', project, version };
};

/** Takes the code out of the address, before anything else can see it. */
const takeCode = (): string | null => {
  const given = new URLSearchParams(location.hash.slice(1));
  const [code, task] = [given.get('c'), given.get('task')];
  if (code === null) return null;
  const view = task === null ? '#/needs-you' : `#/task/${encodeURIComponent(task)}`;
  history.replaceState(null, '', view);
  return code;
};

/** Signs in with the code of the address, or with the session of this tab. */
export const signIn = async (): Promise<void> => {
  const code = takeCode();
  session.value = { state: 'checking' };
  try {
    await check(code === null ? null : await exchange(code));
  } catch {
    session.value = { state: 'out', message: 'The server does not answer.' };
  }
};

export const signOut = async (): Promise<void> => {
  const headers = authorization();
  signOutHere('You are signed out.');
  await fetch('/page/session', { method: 'DELETE', headers, keepalive: true }).catch(() => null);
};

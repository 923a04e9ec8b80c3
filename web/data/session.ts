import { computed, signal } from '@preact/signals';

export type Session =
  | { readonly state: 'checking' }
  | { readonly state: 'out'; readonly message: string | null }
  | {
      readonly state: 'in';
      readonly project: string;
      readonly version: string;
      readonly started_at: string;
      /** Where pull requests go to, `owner/name`. */
      readonly repository?: string;
    };

export const session = signal<Session>({ state: 'checking' });

const key = 'agent-task-server.session';
/** Where the hub serves this page, its script signs in with the key of the browser. */
const hubScript = location.pathname.startsWith('/p/') ? '/hub/sign-in.js' : null;
const askHub = (): Promise<typeof import('../hub/sign-in.ts')> =>
  import(/* @vite-ignore */ `${hubScript}`);

/** Null when there is none; then requests have no token, which `server.auth: none` accepts. */
let token = hubScript === null ? sessionStorage.getItem(key) : null;

/** The first message stays: an answer that comes late knows less. */
const signOutHere = (message: string | null): void => {
  token = null;
  sessionStorage.removeItem(key);
  if (session.value.state !== 'out') session.value = { state: 'out', message };
};

const messageIn = async (response: Response): Promise<string> => {
  const body = (await response.json().catch(() => null)) as { error?: { message?: string } } | null;
  return body?.error?.message ?? `the server answered ${response.status}`;
};

const askOnce = (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(path, {
    ...init,
    headers: { ...init.headers, ...(token === null ? {} : { authorization: `Bearer ${token}` }) },
  });

/** @returns why this tab is not signed in at the hub, or null */
const enterHub = async (code: string): Promise<string | null> => {
  const found = await (await askHub()).enter(code);
  token = found.token;
  return found.refused;
};

/** Paths are relative: the page may be below another one. A server does not say why it refuses. */
export const ask = async (path: string, init?: RequestInit): Promise<Response> => {
  const response = await askOnce(path, init);
  if (response.status !== 401) return response;
  if (hubScript !== null && (await enterHub('')) === null) return askOnce(path, init);
  signOutHere(
    'Your session has ended: the server was started again, or 12 hours are over. Run agent open for a new one.',
  );
  return response;
};

/** @returns why the code does not work, or null */
const exchange = async (code: string): Promise<string | null> => {
  const response = await fetch('page/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  });
  if (!response.ok) return messageIn(response);
  ({ token } = (await response.json()) as { token: string });
  sessionStorage.setItem(key, token);
  return null;
};

type SignedIn = Extract<Session, { readonly state: 'in' }>;

const readSession = async (response: Response): Promise<SignedIn> => ({
  ...((await response.json()) as Omit<SignedIn, 'state'>),
  state: 'in',
});

const check = async (refusal: string | null): Promise<void> => {
  const response = await askOnce('page/session');
  if (!response.ok) return signOutHere(refusal);
  session.value = await readSession(response);
};

/**
 * Whether a server that can be reached again has run all the time: what is created while none runs
 * has no frames. @throws when it does not answer
 */
export const hasRunOn = async (): Promise<boolean> => {
  const response = await ask('page/session');
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  const found = await readSession(response);
  const { value: before } = session;
  // Somebody may have signed out meanwhile.
  if (before.state !== 'in') return false;
  session.value = found;
  return before.started_at === found.started_at;
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
    const enter = hubScript === null ? exchange : enterHub;
    await check(code === null && hubScript === null ? null : await enter(code ?? ''));
  } catch {
    session.value = { state: 'out', message: 'The server does not answer.' };
  }
};

/** Null: the project is at no forge. */
export const repository = computed(() =>
  session.value.state === 'in' ? (session.value.repository ?? null) : null,
);

export const signOut = async (): Promise<void> => {
  const ended =
    hubScript === null
      ? askOnce('page/session', { method: 'DELETE', keepalive: true })
      : (await askHub()).leave();
  signOutHere('You are signed out.');
  await ended.catch(() => null);
};

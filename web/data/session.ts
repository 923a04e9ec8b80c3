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

/** The server no longer takes the token of this tab; it does not say why. */
export const endSession = (): void =>
  signOutHere(
    'Your session has ended: the server was started again, or 12 hours are over. Run agent open for a new one.',
  );

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

type SignedIn = Extract<Session, { readonly state: 'in' }>;

const askServer = (): Promise<Response> => fetch('/page/session', { headers: authorization() });

const readSession = async (response: Response): Promise<SignedIn> => ({
  ...((await response.json()) as Omit<SignedIn, 'state'>),
  state: 'in',
});

const check = async (refusal: string | null): Promise<void> => {
  const response = await askServer();
  if (!response.ok) return signOutHere(refusal);
  session.value = await readSession(response);
};

/**
 * Whether a server that can be reached again has run all the time: what is created while none runs
 * has no frames. @throws when it does not answer
 */
export const hasRunOn = async (): Promise<boolean> => {
  const response = await askServer();
  if (response.status === 401) endSession();
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
    await check(code === null ? null : await exchange(code));
  } catch {
    session.value = { state: 'out', message: 'The server does not answer.' };
  }
};

/** Null: the project is at no forge. */
export const repository = computed(() =>
  session.value.state === 'in' ? (session.value.repository ?? null) : null,
);

export const signOut = async (): Promise<void> => {
  const headers = authorization();
  signOutHere('You are signed out.');
  await fetch('/page/session', { method: 'DELETE', headers, keepalive: true }).catch(() => null);
};

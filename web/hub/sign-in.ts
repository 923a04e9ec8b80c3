/** What the hub adds to a page that it serves: the sign-in with the key of this browser, and its bar. */

export interface Entered {
  /** Of this tab; in memory only. */
  readonly token: string | null;
  /** Why there is none, or why the project cannot be shown. */
  readonly refused: string | null;
}

interface BrowserKey {
  readonly id: string;
  /** Scripts can use it, and cannot read it. */
  readonly key: CryptoKey;
}

const storeName = 'keys';
const keyName = 'own';

const answerOf = <Result>(request: IDBRequest<Result>): Promise<Result> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

const inStore = async <Result>(
  mode: IDBTransactionMode,
  use: (store: IDBObjectStore) => IDBRequest<Result>,
): Promise<Result> => {
  const opening = indexedDB.open('agent-task-server', 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(storeName);
  const db = await answerOf(opening);
  try {
    return await answerOf(use(db.transaction(storeName, mode).objectStore(storeName)));
  } finally {
    db.close();
  }
};

const readKey = (): Promise<BrowserKey | undefined> =>
  inStore('readonly', (store) => store.get(keyName));

const base64url = (bytes: ArrayBuffer): string =>
  btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');

const post = (path: string, body: object): Promise<Response> =>
  fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

const messageIn = async (response: Response): Promise<string> => {
  const body = (await response.json().catch(() => null)) as { error?: { message?: string } } | null;
  return body?.error?.message ?? `the hub answered ${response.status}`;
};

/** @returns why the code does not work, or null */
const registerKey = async (code: string): Promise<string | null> => {
  const { privateKey, publicKey } = await crypto.subtle.generateKey(
    { name: 'ECDSA', namedCurve: 'P-256' },
    false,
    ['sign', 'verify'],
  );
  const public_key = base64url(await crypto.subtle.exportKey('spki', publicKey));
  const response = await post('/hub/keys', { code, public_key });
  if (!response.ok) return messageIn(response);
  const { id } = (await response.json()) as { id: string };
  await inStore('readwrite', (store) => store.put({ id, key: privateKey }, keyName));
  return null;
};

const notSignedIn = 'This browser is not signed in. Run agent open in the folder of a project.';

let token: string | null = null;

/** The text names this origin: a signature is worth nothing to a hub at another one. */
const signNonce = async (): Promise<string | null> => {
  const own = await readKey();
  if (own === undefined) return notSignedIn;
  const asked = await post('/hub/nonces', {});
  if (!asked.ok) return messageIn(asked);
  const { nonce } = (await asked.json()) as { nonce: string };
  const text = new TextEncoder().encode(`agent hub login\n${location.origin}\n${own.id}\n${nonce}`);
  const signed = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, own.key, text);
  const signature = base64url(signed);
  const response = await post('/hub/tokens', { id: own.id, nonce, signature });
  if (!response.ok) return messageIn(response);
  ({ token } = (await response.json()) as { token: string });
  return null;
};

/** With the key of before, so that a code is used only where it is needed. */
const signInWith = async (code: string): Promise<string | null> => {
  const refused = await signNonce();
  if (refused === null || code === '') return refused;
  return (await registerKey(code)) ?? signNonce();
};

/** To the hub itself. */
export const askHub = (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(path, {
    ...init,
    headers: { ...init.headers, ...(token === null ? {} : { authorization: `Bearer ${token}` }) },
  });

const slug = /^\/p\/([^/]+)/.exec(location.pathname)?.[1];

const addBar = (): void => {
  if (document.getElementById('hub-bar') !== null) return;
  const style = document.createElement('link');
  style.rel = 'stylesheet';
  style.href = '/hub/bar.css';
  const link = document.createElement('a');
  link.href = '/';
  link.textContent = 'All projects';
  const bar = document.createElement('nav');
  bar.id = 'hub-bar';
  bar.append(link);
  document.head.append(style);
  document.body.prepend(bar);
};

/** Waits until the server of this page's project runs. @returns why it does not, or null */
const startProject = async (): Promise<string | null> => {
  const response = await askHub(`/hub/projects/${slug}/start`, { method: 'POST' });
  return response.ok ? null : messageIn(response);
};

let isStarted = false;

const enterOnce = async (code: string): Promise<Entered> => {
  token = null;
  const refused = await signInWith(code);
  if (refused !== null || slug === undefined) return { token, refused };
  addBar();
  // Only when the page is opened: a server that somebody stops stays stopped.
  const reason = isStarted ? null : await startProject();
  isStarted = true;
  return { token, refused: reason };
};

let entering: Promise<Entered> | null = null;

/** Signs this tab in: with the code where there is one, and else with the key of this browser. */
export const enter = (code: string): Promise<Entered> => {
  entering ??= enterOnce(code).finally(() => {
    entering = null;
  });
  return entering;
};

/** Signs this browser out, with all its tabs. */
export const leave = async (): Promise<Response> => {
  await inStore('readwrite', (store) => store.delete(keyName)).catch(() => null);
  return askHub('/hub/login', { method: 'DELETE', keepalive: true });
};

import { ForgeError, type ForgeFault } from '../port.ts';

/** A request as it went wrong. `data`: the parsed body, or its text. */
export interface RefusedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number | undefined>>;
  readonly data: unknown;
}

export interface FaultContext {
  /** For people: `POST /repos/acme/shop/pulls` */
  readonly what: string;
  readonly host: string;
  readonly hasToken: boolean;
  /** Epoch ms, by the clock of this machine. */
  readonly now: number;
}

/** GitHub asks for at least a minute when it names no time. */
const pauseMs = 60_000;
/** Limits of GitHub end within an hour; a header that says more is wrong. */
const pauseAtMostMs = 2 * 3_600_000;
const messageAtMost = 300;

/** The text of others on one line, bounded. */
export const shortText = (text: string, atMost = messageAtMost): string => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they do not belong into a message
  const line = text.slice(0, 2 * atMost).replace(/[\u0000-\u001f\u007f\s]+/g, ' ');
  return line.length > atMost ? `${line.slice(0, atMost)}…` : line.trim();
};

const isRecord = (data: unknown): data is Readonly<Record<string, unknown>> =>
  typeof data === 'object' && data !== null;

/** The forge's own words: its message, and what it says of single fields. */
const wordsOf = (data: unknown): string => {
  if (!isRecord(data)) return '';
  const { message, errors } = data;
  const details = (Array.isArray(errors) ? errors : []).slice(0, 5).map((each: unknown) => {
    if (!isRecord(each)) return String(each);
    if (typeof each['message'] === 'string') return each['message'];
    return [each['field'], each['code']].filter((part) => typeof part === 'string').join(' ');
  });
  return shortText([typeof message === 'string' ? message : '', ...details].join('; '));
};

/** The fields that a 422 names: `PullRequest.head` for one that is no branch. */
export const invalidFields = (data: unknown): readonly string[] =>
  isRecord(data) && Array.isArray(data['errors'])
    ? data['errors'].flatMap((each: unknown) =>
        isRecord(each) && typeof each['field'] === 'string' ? [each['field']] : [],
      )
    : [];

export const saysAlready = (data: unknown): boolean => /already exists/i.test(wordsOf(data));

const headerOf = ({ headers }: RefusedAnswer, name: string): string => String(headers[name] ?? '');

/** GraphQL answers with it, and with status 200. */
export const isGraphQlLimit = (data: unknown): boolean =>
  isRecord(data) &&
  Array.isArray(data['errors']) &&
  data['errors'].some((each: unknown) => isRecord(each) && each['type'] === 'RATE_LIMITED');

/** In seconds, or a time of their clock. */
const retryAfterMs = (answer: RefusedAnswer, now: number): number | null => {
  const given = headerOf(answer, 'retry-after').trim();
  if (/^\d{1,9}$/.test(given)) return Number(given) * 1_000;
  const at = Date.parse(given);
  if (Number.isNaN(at)) return null;
  const theirs = Date.parse(headerOf(answer, 'date'));
  return Math.max(at - (Number.isNaN(theirs) ? now : theirs), 0);
};

/**
 * When a limit ends, by the clock of this machine: `x-ratelimit-reset` is a time of GitHub's clock,
 * which its `date` shows.
 */
const endOfLimit = (answer: RefusedAnswer, now: number): number => {
  const after = retryAfterMs(answer, now);
  if (after !== null) return now + Math.min(after, pauseAtMostMs);
  const reset = Number.parseInt(headerOf(answer, 'x-ratelimit-reset'), 10) * 1_000;
  const isSpent = headerOf(answer, 'x-ratelimit-remaining') === '0';
  if (!isSpent || Number.isNaN(reset)) return now + pauseMs;
  const theirs = Date.parse(headerOf(answer, 'date'));
  const pause = reset - (Number.isNaN(theirs) ? now : theirs);
  // Their times have whole seconds.
  return now + Math.min(Math.max(pause, 0) + 1_000, pauseAtMostMs);
};

const isLimit = (answer: RefusedAnswer, words: string): boolean =>
  answer.status === 429 ||
  (answer.status === 403 &&
    (headerOf(answer, 'x-ratelimit-remaining') === '0' ||
      headerOf(answer, 'retry-after') !== '' ||
      /secondary rate limit|abuse detection/i.test(words)));

const scopesOf = (answer: RefusedAnswer): string => {
  const fine = headerOf(answer, 'x-accepted-github-permissions');
  if (fine !== '') return fine.replaceAll('=', ': ').replaceAll(',', ' and');
  const scope = headerOf(answer, 'x-accepted-oauth-scopes');
  return scope === '' ? '' : `one of the scopes ${scope}`;
};

const missingRight = (answer: RefusedAnswer, { what, host }: FaultContext, words: string) => {
  const signOn = /url=(\S+)/.exec(headerOf(answer, 'x-github-sso'))?.[1];
  if (signOn !== undefined)
    return `the token may not be used for this organisation yet; allow it: ${shortText(signOn)}`;
  const right = shortText(scopesOf(answer));
  const lacks =
    right === '' ? `the token may not do this: ${what}` : `the token lacks the right ${right}`;
  return `${lacks} (${host}: ${words || answer.status}); give it that right, or give another token`;
};

const faults: Readonly<Record<number, ForgeFault>> = {
  401: 'token',
  404: 'gone',
  408: 'away',
  410: 'gone',
  451: 'gone',
};

/** What an answer that is no success means. */
export const faultOf = (answer: RefusedAnswer, context: FaultContext): ForgeError => {
  const { what, host, hasToken, now } = context;
  const { status } = answer;
  const words = wordsOf(answer.data);
  const said = `${host} answers ${status}${words === '' ? '' : ` (${words})`} to ${what}`;
  if (isLimit(answer, words)) {
    const at = endOfLimit(answer, now);
    const until = new Date(at).toISOString();
    return new ForgeError(
      'limit',
      `${host} answers nothing until ${until}: ${words || status}`,
      at,
    );
  }
  if (status >= 500) return new ForgeError('away', `${said}; try again later`);
  if (!hasToken && [401, 403, 404].includes(status))
    return new ForgeError('token', `${said}; there is no token: give one`);
  if (status === 401)
    return new ForgeError(
      'token',
      `${host} does not accept the token (${words || status}): it is wrong, expired or revoked; give another one`,
    );
  if (status === 403 && /archived/i.test(words))
    return new ForgeError('refused', `${said}; the repository is archived: nothing can be written`);
  if (status === 403) return new ForgeError('right', missingRight(answer, context, words));
  const fault = faults[status] ?? 'refused';
  if (fault !== 'gone') return new ForgeError(fault, said);
  return new ForgeError(fault, `${said}; it is not there, or the token may not see it`);
};

export const notOurs = ({ host, what }: Pick<FaultContext, 'host' | 'what'>): ForgeError =>
  new ForgeError(
    'away',
    `${host} answers ${what} with something that is not of a forge's API; a proxy or a login page may be in between, or forge.api_url names another server`,
  );

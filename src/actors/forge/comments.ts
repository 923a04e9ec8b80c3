import { z } from 'zod';
import type { ForgeClient } from './http/client.ts';
import { commentsAtMost, type ForgeComment, type Reply } from './port.ts';

/** Forges take 65,535 characters; the marker needs room too. */
const textAtMost = 60_000;
const anything = z.unknown();

/** Null: the account was deleted. */
export type User = { readonly login: string; readonly type?: string | undefined } | null;

/** A comment as a forge has it. */
export interface Written {
  readonly id: number;
  readonly user: User;
  /** GitHub: how the author belongs to the repository. */
  readonly author_association?: string | undefined;
  readonly body: string | null;
  readonly created_at: string;
  readonly path?: string;
  readonly line?: number | null | undefined;
  readonly approves?: boolean;
}

/** People of a forge and their rights. */
export interface People {
  readonly isBot: (user: User) => boolean;
  /** Tells who may push, those of one list together. */
  readonly judge: (
    signal: AbortSignal,
  ) => (writer: Pick<Written, 'user' | 'author_association'>) => Promise<boolean>;
  /** The account of our token. */
  readonly login: (signal: AbortSignal) => Promise<string>;
  /** Tells whether a user is the account of our token. */
  readonly self: (signal: AbortSignal) => Promise<(user: User) => boolean>;
}

/** What a forge does in its own way. Each list has the newest, the oldest first. */
export interface Discussion<Line extends Written> {
  readonly plain: (number: number, signal: AbortSignal) => Promise<readonly Written[]>;
  readonly lines: (number: number, signal: AbortSignal) => Promise<readonly Line[]>;
  /** Those with words. */
  readonly reviews: (number: number, signal: AbortSignal) => Promise<readonly Written[]>;
  /** Writes into the thread of a line. `there`: all that is said beside lines. */
  readonly answerLine: (
    number: number,
    answer: { readonly to: string; readonly body: string; readonly there: readonly Line[] },
    signal: AbortSignal,
  ) => Promise<void>;
  /** Ends the thread of a line, if that may be. Absent: the forge has no such request. */
  readonly resolve?: (number: number, line: Line, signal: AbortSignal) => Promise<void>;
}

const marker = (key: string): string =>
  `<!-- agent-task-server:${key.replace(/[^\w.:@/#+-]/g, '_').replaceAll('--', '-_')} -->`;

/** Our marker is the last line: in a quotation of it, a line begins with `>`. */
const markerAtEnd = /(?:^|\n)(<!-- agent-task-server:[^\n]* -->)\s*$/;
const markerIn = (text: string): string | null => markerAtEnd.exec(text.slice(-1_000))?.[1] ?? null;

export const createComments = <Line extends Written>(
  { ask }: ForgeClient,
  discussion: Discussion<Line>,
  people: People,
) => {
  /** Our own comment with a key. */
  const ownWith = async (key: string, there: readonly Written[], signal: AbortSignal) => {
    const marked = there.filter(({ body }) => markerIn(body ?? '') === marker(key));
    if (marked.length === 0) return null;
    const isOurs = await people.self(signal);
    return marked.find(({ user }) => isOurs(user)) ?? null;
  };
  const textOf = (text: string, key: string): string =>
    `${text.slice(0, textAtMost)}\n\n${marker(key)}`;
  const write = async (number: number, body: string, signal: AbortSignal): Promise<void> => {
    const path = `issues/${number}/comments`;
    await ask({ method: 'POST', path, body: { body }, schema: anything, signal });
  };

  return {
    comments: async (number: number, signal: AbortSignal): Promise<readonly ForgeComment[]> => {
      const { plain, lines, reviews } = discussion;
      const found = [
        ...(await plain(number, signal)).map((each) => ({ kind: 'plain', each }) as const),
        ...(await lines(number, signal)).map((each) => ({ kind: 'line', each }) as const),
        ...(await reviews(number, signal)).map((each) => ({ kind: 'review', each }) as const),
      ];
      const newest = found
        .sort((one, other) => Date.parse(one.each.created_at) - Date.parse(other.each.created_at))
        .slice(-commentsAtMost);
      const marked = newest.some(({ each }) => markerIn(each.body ?? '') !== null);
      const isOurs = marked ? await people.self(signal) : () => false;
      const canWrite = people.judge(signal);
      const comments: ForgeComment[] = [];
      for (const { kind, each } of newest) {
        const { id, user, body, path, line, created_at: at } = each;
        comments.push({
          id: String(id),
          kind,
          author: user?.login ?? 'ghost',
          at,
          text: body ?? '',
          canWrite: await canWrite(each),
          isBot: people.isBot(user),
          ours: markerIn(body ?? '') !== null && isOurs(user),
          ...(each.approves === true ? { approves: true } : {}),
          ...(path === undefined ? {} : { path }),
          ...(line == null ? {} : { line }),
        });
      }
      return comments;
    },
    note: async (
      number: number,
      { text, key }: Omit<Reply, 'to' | 'resolves'>,
      signal: AbortSignal,
    ) => {
      const there = await ownWith(key, await discussion.plain(number, signal), signal);
      const body = textOf(text, key);
      if (there === null) return write(number, body, signal);
      if (there.body === body) return;
      const path = `issues/comments/${there.id}`;
      await ask({ method: 'PATCH', path, body: { body }, schema: anything, signal });
    },
    reply: async (
      number: number,
      { to, text, key, resolves }: Reply,
      signal: AbortSignal,
    ): Promise<void> => {
      const body = textOf(text, key);
      if (to?.kind === 'line') {
        const there = await discussion.lines(number, signal);
        if ((await ownWith(key, there, signal)) === null)
          await discussion.answerLine(number, { to: to.id, body, there }, signal);
        const line = there.find(({ id }) => String(id) === to.id);
        if (resolves === true && line !== undefined)
          await discussion.resolve?.(number, line, signal);
        return;
      }
      const there = await discussion.plain(number, signal);
      if ((await ownWith(key, there, signal)) === null) await write(number, body, signal);
    },
  };
};

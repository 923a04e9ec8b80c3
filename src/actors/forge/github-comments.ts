import { z } from 'zod';
import { type GitHubPeople, isBot, userSchema } from './github-people.ts';
import { type ForgeClient, ForgeRefusal } from './http/client.ts';
import type { ForgeLists } from './http/lists.ts';
import { commentsAtMost, type ForgeComment, ForgeError, type Reply } from './port.ts';

/** GitHub takes 65,536 characters; the marker needs room too. */
const textAtMost = 60_000;

const commentSchema = z.object({
  id: z.number(),
  user: userSchema,
  author_association: z.string().optional(),
  body: z.string().nullable(),
  created_at: z.string(),
});
const lineSchema = commentSchema.extend({
  path: z.string(),
  line: z.number().nullish(),
  original_line: z.number().nullish(),
  in_reply_to_id: z.number().nullish(),
});
const reviewSchema = commentSchema
  .omit({ created_at: true })
  // A review that its author has not sent yet has no time.
  .extend({ submitted_at: z.string().nullish(), state: z.string() });
const anything = z.unknown();

type Comment = z.infer<typeof commentSchema> &
  Partial<
    Pick<z.infer<typeof lineSchema>, 'path' | 'line' | 'original_line' | 'in_reply_to_id'>
  > & {
    readonly state?: string;
  };

const marker = (key: string): string =>
  `<!-- agent-task-server:${key.replace(/[^\w.:@/#+-]/g, '_').replaceAll('--', '-_')} -->`;

/** Our marker is the last line: in a quotation of it, a line begins with `>`. */
const markerAtEnd = /(?:^|\n)(<!-- agent-task-server:[^\n]* -->)\s*$/;
const markerIn = (text: string): string | null => markerAtEnd.exec(text.slice(-1_000))?.[1] ?? null;

export const createComments = ({ ask }: ForgeClient, lists: ForgeLists, people: GitHubPeople) => {
  const plainOf = (number: number, signal: AbortSignal): Promise<readonly Comment[]> =>
    lists.newest({ path: `issues/${number}/comments`, item: commentSchema, signal });
  const linesOf = (number: number, signal: AbortSignal): Promise<readonly Comment[]> =>
    lists.newest({ path: `pulls/${number}/comments`, item: lineSchema, signal });
  const reviewsOf = async (number: number, signal: AbortSignal): Promise<readonly Comment[]> => {
    const path = `pulls/${number}/reviews`;
    const reviews = await lists.newest({ path, item: reviewSchema, signal });
    return reviews.flatMap(({ submitted_at: at, ...review }) =>
      at == null || !review.body?.trim() ? [] : [{ ...review, created_at: at }],
    );
  };

  /** What we wrote with a key. */
  const ownWith = async (key: string, there: readonly Comment[], signal: AbortSignal) => {
    const marked = there.filter(({ body }) => markerIn(body ?? '') === marker(key));
    if (marked.length === 0) return null;
    const isOurs = await people.self(signal);
    return marked.find(({ user }) => isOurs(user)) ?? null;
  };
  const bodyOf = (text: string, key: string) => ({
    body: `${text.slice(0, textAtMost)}\n\n${marker(key)}`,
  });

  return {
    comments: async (number: number, signal: AbortSignal): Promise<readonly ForgeComment[]> => {
      const found = [
        ...(await plainOf(number, signal)).map((each) => ({ kind: 'plain', each }) as const),
        ...(await linesOf(number, signal)).map((each) => ({ kind: 'line', each }) as const),
        ...(await reviewsOf(number, signal)).map((each) => ({ kind: 'review', each }) as const),
      ];
      const newest = found
        .sort((one, other) => Date.parse(one.each.created_at) - Date.parse(other.each.created_at))
        .slice(-commentsAtMost);
      const marked = newest.some(({ each }) => markerIn(each.body ?? '') !== null);
      const isOurs = marked ? await people.self(signal) : () => false;
      const canWrite = people.judge(signal);
      const comments: ForgeComment[] = [];
      for (const { kind, each } of newest) {
        const { id, user, body, path, created_at: at } = each;
        const line = each.line ?? each.original_line;
        comments.push({
          ...{ id: String(id), kind, author: user?.login ?? 'ghost', at, text: body ?? '' },
          canWrite: await canWrite(each),
          isBot: isBot(user),
          ours: markerIn(body ?? '') !== null && isOurs(user),
          ...(each.state === 'APPROVED' ? { approves: true } : {}),
          ...(path === undefined ? {} : { path }),
          ...(line == null ? {} : { line }),
        });
      }
      return comments;
    },
    note: async (number: number, { text, key }: Omit<Reply, 'to'>, signal: AbortSignal) => {
      const there = await ownWith(key, await plainOf(number, signal), signal);
      const body = bodyOf(text, key);
      if (there?.body === body.body) return;
      const own = { method: 'PATCH', path: `issues/comments/${there?.id}` } as const;
      const fresh = { method: 'POST', path: `issues/${number}/comments` } as const;
      await ask({ ...(there === null ? fresh : own), body, schema: anything, signal });
    },
    reply: async (number: number, { to, text, key }: Reply, signal: AbortSignal): Promise<void> => {
      const isLine = to?.kind === 'line';
      const there = await (isLine ? linesOf : plainOf)(number, signal);
      if ((await ownWith(key, there, signal)) !== null) return;
      const body = bodyOf(text, key);
      const send = { method: 'POST', body, schema: anything, signal } as const;
      if (!isLine) return void (await ask({ ...send, path: `issues/${number}/comments` }));
      // Only the first comment of a thread can be answered.
      const first = there.find(({ id }) => String(id) === to.id)?.in_reply_to_id ?? to.id;
      try {
        await ask({ ...send, path: `pulls/${number}/comments/${first}/replies` });
      } catch (error) {
        if (error instanceof ForgeRefusal && error.fault === 'gone')
          throw new ForgeError('gone', `the comment ${to.id} is not there any more`);
        throw error;
      }
    },
  };
};

import { z } from 'zod';
import type { Discussion } from './comments.ts';
import { userSchema } from './github-people.ts';
import type { createThreads } from './github-threads.ts';
import { type ForgeClient, ForgeRefusal } from './http/client.ts';
import type { ForgeLists } from './http/lists.ts';
import { ForgeError } from './port.ts';

const commentSchema = z.object({
  id: z.number(),
  user: userSchema,
  author_association: z.string().optional(),
  body: z.string().nullable(),
  created_at: z.string(),
});
const lineSchema = commentSchema
  .extend({
    path: z.string(),
    line: z.number().nullish(),
    original_line: z.number().nullish(),
    in_reply_to_id: z.number().nullish(),
  })
  .transform(({ line, original_line, ...rest }) => ({ ...rest, line: line ?? original_line }));
const reviewSchema = commentSchema
  .omit({ created_at: true })
  // A review that its author has not sent yet has no time.
  .extend({ submitted_at: z.string().nullish(), state: z.string() });

type Line = z.infer<typeof lineSchema>;

export const createDiscussion = (
  { ask }: ForgeClient,
  lists: ForgeLists,
  resolveThread: ReturnType<typeof createThreads>,
): Discussion<Line> => ({
  plain: (number, signal) =>
    lists.newest({ path: `issues/${number}/comments`, item: commentSchema, signal }),
  lines: (number, signal) =>
    lists.newest({ path: `pulls/${number}/comments`, item: lineSchema, signal }),
  reviews: async (number, signal) => {
    const path = `pulls/${number}/reviews`;
    const reviews = await lists.newest({ path, item: reviewSchema, signal });
    return reviews.flatMap(({ submitted_at: at, state, ...review }) =>
      at == null || !review.body?.trim()
        ? []
        : [{ ...review, created_at: at, approves: state === 'APPROVED' }],
    );
  },
  answerLine: async (number, { to, body, there }, signal) => {
    // Only the first comment of a thread can be answered.
    const first = there.find(({ id }) => String(id) === to)?.in_reply_to_id ?? to;
    const path = `pulls/${number}/comments/${first}/replies`;
    try {
      await ask({ method: 'POST', path, body: { body }, schema: z.unknown(), signal });
    } catch (error) {
      if (error instanceof ForgeRefusal && error.fault === 'gone')
        throw new ForgeError('gone', `the comment ${to} is not there any more`);
      throw error;
    }
  },
  resolve: (number, { id, in_reply_to_id: first }, signal) =>
    resolveThread(number, String(first ?? id), signal),
});

import { z } from 'zod';
import type { Discussion, Written } from './comments.ts';
import { userSchema } from './gitea-people.ts';
import { reviewSchema } from './gitea-status.ts';
import { type ForgeClient, ForgeRefusal } from './http/client.ts';
import type { ForgeLists } from './http/lists.ts';
import { ForgeError } from './port.ts';

const commentSchema = z.object({
  id: z.number(),
  user: userSchema,
  body: z.string().nullable(),
  created_at: z.string(),
});
const lineSchema = commentSchema.extend({
  path: z.string(),
  /** In the new file, or 0. */
  position: z.number(),
  /** In the old file, or 0. */
  original_position: z.number(),
});
const anything = z.unknown();

/** Each costs a request: there is no list of all. */
const reviewsAtMost = 100;

interface Line extends Written {
  readonly path: string;
  readonly position: number;
  readonly original_position: number;
}

/** A server that is older than Gitea 1.27, or a Forgejo, cannot answer a comment. */
const cannotAnswer = (error: unknown): boolean =>
  error instanceof ForgeRefusal && [404, 405].includes(error.answer.status);

export const createDiscussion = ({ ask }: ForgeClient, lists: ForgeLists): Discussion<Line> => {
  const reviewsOf = (number: number, signal: AbortSignal) =>
    lists.newest({ path: `pulls/${number}/reviews`, item: reviewSchema, signal });

  return {
    plain: (number, signal) =>
      lists.newest({ path: `issues/${number}/comments`, item: commentSchema, signal }),
    lines: async (number, signal) => {
      const spoken = (await reviewsOf(number, signal)).filter(
        ({ comments_count: count, state }) => count !== 0 && state !== 'PENDING',
      );
      const all: Line[] = [];
      for (const { id } of spoken.slice(-reviewsAtMost)) {
        const path = `pulls/${number}/reviews/${id}/comments`;
        const found = await lists.newest({ path, item: lineSchema, signal });
        for (const each of found)
          all.push({ ...each, line: each.position || each.original_position || null });
      }
      return all;
    },
    reviews: async (number, signal) =>
      (await reviewsOf(number, signal)).flatMap(({ submitted_at: at, state, ...review }) =>
        state === 'PENDING' || !review.body?.trim()
          ? []
          : [{ ...review, created_at: at, approves: state === 'APPROVED' }],
      ),
    answerLine: async (number, { to, body, there }, signal) => {
      const comment = there.find(({ id }) => String(id) === to);
      if (comment === undefined)
        throw new ForgeError('gone', `the comment ${to} is not there any more`);
      const send = { method: 'POST', schema: anything, signal } as const;
      try {
        await ask({ ...send, path: `pulls/${number}/comments/${to}/replies`, body: { body } });
      } catch (error) {
        if (!cannotAnswer(error)) throw error;
        const { path, position, original_position: old } = comment;
        // What is said of one line is shown as one conversation.
        const said = { path, body, new_position: position, old_position: old };
        const review = { event: 'COMMENT', body: '', comments: [said] };
        await ask({ ...send, path: `pulls/${number}/reviews`, body: review });
      }
    },
  };
};

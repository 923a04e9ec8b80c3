import { z } from 'zod';
import { unanswered } from '../../machines/review.ts';
import type { Finish, OwnTool } from './port.ts';

export const answersMissing = 'not finished: the review has comments without an answer';

export const commentAnswersSchema = z.array(
  z.strictObject({
    comment: z.int().positive().describe('the number of the comment'),
    answer: z.string().min(1).max(4_000).describe('what was done about it, or why not'),
  }),
);

export const finishArguments = z.strictObject({
  status: z
    .enum(['done', 'failed'])
    .describe('done when the task is complete, failed when it cannot be completed'),
  summary: z
    .string()
    .min(1)
    .describe('what was done, or why it could not be done; others will build on this text'),
  artifacts: z
    .array(z.string().min(1))
    .default([])
    .describe('paths of the files that were made or changed'),
  answers: commentAnswersSchema
    .default([])
    .describe('an answer to each comment of a review, when the task has one'),
});

/** Ends the attempt; the executor passes the arguments on as `CallResult.finish`. */
export const finishTool: OwnTool<Finish> = {
  name: 'finish',
  files: 'ignores',
  isRepeatable: true,
  description:
    'Ends your work on the task. Call it once, as the last call, when the task is complete or cannot be.',
  schema: finishArguments,
  run: async ({ status, answers }, { comments = [] }) => {
    const open = unanswered(comments, answers);
    return status === 'failed' || open.length === 0
      ? { ok: true, text: `finished: ${status}` }
      : {
          ok: false,
          text: `${answersMissing} (${open.join(', ')}); call finish again with answers: [{"comment": ${open[0]}, "answer": "…"}, …]`,
        };
  },
};

import { z } from 'zod';
import type { ForgeClient } from './http/client.ts';
import { ForgeError } from './port.ts';

/** Of a hundred threads each. */
const pagesAtMost = 10;

const threadsQuery = `query ($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    reviewThreads(first: 100, after: $after) {
      pageInfo { hasNextPage endCursor }
      nodes { id isResolved viewerCanResolve comments(first: 1) { nodes { fullDatabaseId } } }
    }
  } }
}`;
const resolveThread = `mutation ($id: ID!) {
  resolveReviewThread(input: { threadId: $id }) { thread { isResolved } }
}`;

const threadSchema = z.object({
  id: z.string(),
  isResolved: z.boolean(),
  viewerCanResolve: z.boolean(),
  comments: z.object({
    nodes: z.array(z.object({ fullDatabaseId: z.union([z.string(), z.number()]) })),
  }),
});
const threadsSchema = z.object({
  pageInfo: z.object({ hasNextPage: z.boolean(), endCursor: z.string().nullable() }),
  nodes: z.array(threadSchema),
});
type Threads = z.infer<typeof threadsSchema>;
const noThreads: Threads = {
  pageInfo: { hasNextPage: false, endCursor: null },
  nodes: [],
};
const answerSchema = z.object({
  data: z
    .object({
      repository: z
        .object({ pullRequest: z.object({ reviewThreads: threadsSchema }).nullish() })
        .nullish(),
    })
    .nullish(),
});

/** Only GraphQL knows threads of a review. Who may not resolve one, or has no such API, leaves it open. */
export const createThreads = ({ ask }: ForgeClient, repository: string) => {
  const [owner, name] = repository.split('/');
  const send = <Data>(
    query: string,
    variables: Readonly<Record<string, unknown>>,
    schema: z.ZodType<Data>,
    signal: AbortSignal,
  ) => ask({ method: 'POST', path: '/graphql', body: { query, variables }, schema, signal });

  const page = async (number: number, after: string | null, signal: AbortSignal) => {
    const variables = { owner, name, number, after };
    const { data } = await send(threadsQuery, variables, answerSchema, signal);
    return data?.repository?.pullRequest?.reviewThreads ?? noThreads;
  };

  const find = async (number: number, first: string, signal: AbortSignal) => {
    let next: Threads['pageInfo'] = { hasNextPage: true, endCursor: null };
    for (let at = 0; at < pagesAtMost && next.hasNextPage; at += 1) {
      const { nodes, pageInfo } = await page(number, next.endCursor, signal);
      const found = nodes.find(
        ({ comments }) => String(comments.nodes[0]?.fullDatabaseId) === first,
      );
      if (found !== undefined) return found;
      next = pageInfo;
    }
    return null;
  };

  /** `first`: the comment that a thread began with. */
  return async (number: number, first: string, signal: AbortSignal): Promise<void> => {
    try {
      const thread = await find(number, first, signal);
      if (thread === null || thread.isResolved || !thread.viewerCanResolve) return;
      await send(resolveThread, { id: thread.id }, z.unknown(), signal);
    } catch (error) {
      signal.throwIfAborted();
      // The answer is there, so nothing is to be done again for this.
      if (!(error instanceof ForgeError) || error.fault === 'limit') throw error;
    }
  };
};

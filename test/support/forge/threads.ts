import type { Answer, Asked } from './routes.ts';
import type { Said, State } from './state.ts';

const pageSize = 100;
const idOf = ({ id }: Said): string => `PRRT_${id}`;
const isFirst = ({ kind, replyTo }: Said): boolean => kind === 'line' && replyTo === undefined;

const fail = (data: unknown, type: string, message: string): Answer => ({
  body: { data, errors: [{ type, message }] },
});

/** `reviewThreads` of a pull request, by pages of a hundred. */
export const listThreads = ({ state, body }: Asked): Answer => {
  const { number, after } = body['variables'] as { number: number; after: string | null };
  const repository = `${state.owner}/${state.name}`;
  if (!state.maySee)
    return fail({ repository: null }, 'NOT_FOUND', `Could not resolve to ${repository}`);
  const all = state.said.filter((each) => isFirst(each) && each.number === number);
  const from = Number(after ?? 0);
  const nodes = all.slice(from, from + pageSize).map((each) => ({
    ...{ id: idOf(each), isResolved: each.isResolved === true },
    viewerCanResolve: state.mayResolve && each.isResolved !== true,
    comments: { nodes: [{ fullDatabaseId: String(each.id) }] },
  }));
  const end = from + pageSize;
  const pageInfo = { hasNextPage: end < all.length, endCursor: String(end) };
  return {
    body: { data: { repository: { pullRequest: { reviewThreads: { pageInfo, nodes } } } } },
  };
};

/** `resolveReviewThread`; one that is resolved stays so. */
export const resolveThread = ({ state, body }: Asked): Answer => {
  const { id } = body['variables'] as { id: string };
  const thread = state.said.find((each) => isFirst(each) && idOf(each) === id);
  const none = { resolveReviewThread: null };
  if (thread === undefined)
    return fail(none, 'NOT_FOUND', `Could not resolve to a node with the global id of '${id}'`);
  if (!state.mayResolve || state.archived) return fail(none, 'FORBIDDEN', refusalOf(state));
  thread.isResolved = true;
  return { body: { data: { resolveReviewThread: { thread: { isResolved: true } } } } };
};

const refusalOf = ({ archived }: State): string =>
  archived
    ? 'Repository was archived so is read-only.'
    : 'Resource not accessible by personal access token';

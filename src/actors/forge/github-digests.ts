import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type ForgeClient, ForgeRefusal } from './http/client.ts';

/** GitHub works it out after it was asked: until then the last answer counts. */
const pullSchema = z.looseObject({ mergeable: z.string(), mergeStateStatus: z.string() });
const answerSchema = z.object({
  data: z.object({ repository: z.record(z.string(), pullSchema.nullable()).nullish() }).nullish(),
});
type Pull = z.infer<typeof pullSchema>;

const atOnce = 100;
/** Of one commit; of more, their number and their common state show. */
const checksAtMost = 50;
const rememberedAtMost = 1_000;

const fragment = `fragment digest on PullRequest {
  state isDraft headRefOid baseRefName updatedAt reviewDecision mergeable mergeStateStatus
  comments { totalCount }
  reviews { totalCount }
  commits(last: 1) { nodes { commit { statusCheckRollup {
    state
    contexts(first: ${checksAtMost}) { totalCount nodes {
      ... on CheckRun { databaseId status conclusion }
      ... on StatusContext { id state createdAt }
    } }
  } } } }
}`;

const queryOf = (numbers: readonly number[]): string => {
  const pulls = numbers.map((number) => `p${number}: pullRequest(number: ${number}) {...digest}`);
  return `query ($owner: String!, $name: String!) {
  repository(owner: $owner, name: $name) { ${pulls.join('\n')} }
}
${fragment}`;
};

/** An Enterprise server may be too old for the query, and a token may not be allowed to send it. */
const isNoAnswer = (error: unknown): boolean =>
  error instanceof ForgeRefusal && ['gone', 'right', 'refused'].includes(error.fault);

/** Digests by one request of GraphQL for a hundred pull requests. */
export const createDigests = ({ ask }: ForgeClient, repository: string) => {
  const [owner, name] = repository.split('/');
  const merges = new Map<number, string>();

  const mergeOf = (number: number, { mergeable, mergeStateStatus: status }: Pull): string => {
    const isKnown = mergeable !== 'UNKNOWN' && status !== 'UNKNOWN';
    const merge = isKnown ? `${mergeable} ${status}` : (merges.get(number) ?? 'UNKNOWN');
    merges.delete(number);
    merges.set(number, merge);
    for (const [oldest] of merges) if (merges.size > rememberedAtMost) merges.delete(oldest);
    return merge;
  };
  const digestOf = (number: number, pull: Pull | null | undefined): string => {
    if (pull == null) return 'gone';
    const { mergeable: _, mergeStateStatus: __, ...rest } = pull;
    const text = JSON.stringify([rest, mergeOf(number, pull)]);
    return createHash('sha256').update(text).digest('base64url');
  };

  return async (
    numbers: readonly number[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, string> | null> => {
    const digests = new Map<number, string>();
    for (let from = 0; from < numbers.length; from += atOnce) {
      const asked = numbers.slice(from, from + atOnce);
      const body = { query: queryOf(asked), variables: { owner, name } };
      const send = { method: 'POST', path: '/graphql', body, schema: answerSchema } as const;
      const answer = await ask({ ...send, signal }).catch((error: unknown) => {
        if (isNoAnswer(error)) return null;
        throw error;
      });
      const pulls = answer?.data?.repository;
      if (pulls == null) return null;
      for (const number of asked) digests.set(number, digestOf(number, pulls[`p${number}`]));
    }
    return digests;
  };
};

import { messageOf } from '../../../machines/message-of.ts';
import type { ForgeProblem } from '../../../machines/source/forge-problem.ts';
import { ForgeError } from '../../forge/port.ts';
import { PullRequestError } from '../publishing/until-news.ts';

export const forgeProblemIn = (error: unknown): ForgeProblem => {
  if (error instanceof PullRequestError) {
    const { needs, fault = 'refused', message, retryAt } = error.problem;
    return { needs, fault, message, retryAt };
  }
  if (!(error instanceof ForgeError))
    return { needs: 'forge', fault: 'away', message: messageOf(error), retryAt: null };
  const { fault, message, retryAt } = error;
  const needs = fault === 'limit' ? 'limit' : fault === 'away' ? 'forge' : 'person';
  return { needs, fault, message, retryAt };
};

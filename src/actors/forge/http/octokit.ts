import { Octokit } from '@octokit/core';
import { retry } from '@octokit/plugin-retry';
import { throttling } from '@octokit/plugin-throttling';

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/**
 * Octokit over a `fetch` of ours. Writes are a second apart and notifications three, as GitHub asks;
 * what is safe to repeat is repeated after a fault. Limits are the caller's.
 */
export const createOctokit = (
  apiUrl: string,
  fetch: (url: string, init?: RequestInit) => Promise<Response>,
  pauseMs: number,
): Octokit =>
  new (Octokit.plugin(retry, throttling))({
    baseUrl: apiUrl,
    userAgent: 'agent-task-server',
    log: silent,
    request: { fetch },
    // A number of its own at a request would count for every answer, 401 too.
    retry: {
      retries: 2,
      doNotRetry: [304, 400, 401, 403, 404, 405, 409, 410, 422, 429, 451],
      retryAfterBaseValue: pauseMs,
    },
    throttle: {
      // Its pauses cannot be shorter.
      enabled: pauseMs >= 1_000,
      id: apiUrl,
      onRateLimit: () => false,
      onSecondaryRateLimit: () => false,
    },
  });

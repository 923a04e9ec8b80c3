import { expect, test } from 'vitest';
import {
  isRateLimit,
  limitEndIn,
  usageLimitIn,
} from '../../../src/actors/assistants/usage-meter.ts';

const now = Date.parse('2026-11-23T12:00:00.000Z');
const iso = (at: number | null | undefined) =>
  at === null || at === undefined ? at : new Date(at).toISOString();

test.each([
  [
    "You've hit your usage limit. Upgrade to Pro (https://openai.com/chatgpt/pricing) or try again in 2 days 17 hours 14 minutes.",
    '2026-11-26T05:14:00.000Z',
  ],
  ['Claude AI usage limit reached|1795471200', '2026-11-23T22:00:00.000Z'],
  ["You've hit your limit · resets 2pm (Asia/Shanghai)", '2026-11-24T06:00:00.000Z'],
  ["You've hit your session limit · resets 7:50pm (Europe/Berlin)", '2026-11-23T18:50:00.000Z'],
  [
    "You've hit your usage limit. Try again at Nov 27th, 2026 3:05 PM (UTC).",
    '2026-11-27T15:05:00.000Z',
  ],
  ["You've hit your limit · resets Nov 30, 11:30am (Asia/Kolkata)", '2026-11-30T06:00:00.000Z'],
  ["You've hit your limit · resets Jan 2, 9am (Etc/UTC)", '2027-01-02T09:00:00.000Z'],
  ["You've hit your usage limit. Try again later.", null],
  ["You've reached your Opus limit.", null],
  ["You've hit your team's shared budget. Switch to another model", null],
  ['Your workspace is out of credits. Add credits to continue.', null],
  ['You hit your spend cap set by the owner of your workspace.', null],
  ["You've hit your limit · resets 2pm (Nowhere/Never)", null],
  ['Credit balance is too low', null],
  ['Quota exceeded. Check your plan and billing details.', null],
])('%s', (message, resetsAt) => {
  const limit = usageLimitIn(message, now);

  expect(limit).not.toBeNull();
  expect(iso(limit?.resetsAt)).toBe(resetsAt);
});

test.each([
  'unexpected status 401 Unauthorized',
  'exceeded retry limit, last status: 429 Too Many Requests',
  'the turn limit is reached',
  'the context window limit is reached',
  'the spend cap of the test is 3',
])('%s is no usage limit', (message) => {
  expect(usageLimitIn(message, now)).toBeNull();
});

test.each([
  ['429 Rate limit reached for m. Please try again in 1m2.5s.', 62_500],
  ['Too many requests, retry after 30 seconds', 30_000],
  ['rate_limit_exceeded: resets in 2h', 7_200_000],
  ['Request rejected (429)', null],
])('%s is a rate limit, and says when it ends', (message, pause) => {
  expect(isRateLimit(message)).toBe(true);
  expect(limitEndIn(message, now)).toBe(pause === null ? null : now + pause);
});

test('a time of day without a zone is that of this machine', () => {
  const limit = usageLimitIn("You've hit your usage limit or try again at 3:28 PM.", now);

  const at = new Date(limit?.resetsAt ?? 0);
  expect([at.getHours(), at.getMinutes()]).toEqual([15, 28]);
  expect(at.getTime()).toBeGreaterThan(now);
});

test('a message of great length is read at once', () => {
  const words = 'try again in 1 day '.repeat(50_000);

  expect(usageLimitIn(`usage limit ${words}`, now)).not.toBeNull();
});

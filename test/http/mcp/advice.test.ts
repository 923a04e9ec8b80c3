import { expect, test } from 'vitest';
import {
  explainedForAssistant,
  mergedForAssistant,
  withAdvice,
} from '../../../src/http/mcp/tools.ts';

test('explain names tools, and apart from them what only a person can do', () => {
  const explained = { task_id: 'bd-1', allowed_events: ['run', 'cancel', 'respond'], reason: 'x' };

  expect(explainedForAssistant(explained, true)).toEqual({
    ...{ task_id: 'bd-1', reason: 'x' },
    ...{ allowed_tools: ['run', 'answer'], only_your_user: ['cancel'] },
  });
  expect(explainedForAssistant(explained, false)).toMatchObject({
    ...{ allowed_tools: ['run'], only_your_user: ['cancel', 'respond'] },
  });
});

const first = { task_id: 'bd-2', attempt: 3, complete: true };
test.each([
  ['detached', { detached: true }, expect.stringContaining('git switch <branch>')],
  ['moved on', { moved_on: true }, 'call merge again with squash: true'],
  ['before it', { merge_first: first }, 'merge attempt 3 of bd-2 first; then call merge again'],
  [
    'before it and not complete',
    { merge_first: { ...first, complete: false } },
    'merge attempt 3 of bd-2 first, with force: true since it is not complete; then call merge again',
  ],
  ['the same lines', { same_lines: true }, expect.stringContaining('run agent update')],
  ['a rewritten branch', { rewritten: true }, 'tell your user to run git merge agent/bd-1/1'],
  ['something else', {}, expect.stringContaining('when nothing is in the way')],
])('a merge in conflict says how to go on: %s', (_, facts, to_go_on) => {
  const merged = { status: 'conflict', branch: 'agent/bd-1/1', why: 'x', files: ['a'], ...facts };

  expect(mergedForAssistant(merged)).toEqual({ ...merged, to_go_on });
  expect(mergedForAssistant({ status: 'merged', commit: 'c' })).toEqual({
    ...{ status: 'merged', commit: 'c' },
  });
});

test('a refusal names the tools that are allowed instead', () => {
  const facts = {
    ...{ task_id: 'bd-1', event: 'respond', state: 'failed' },
    allowed: ['diff', 'retry', 'merge --force'],
  };

  expect(withAdvice({ code: 'event_not_allowed', message: '', facts })).toEqual({
    code: 'event_not_allowed',
    message:
      'task bd-1 is failed: answer is not allowed now; allowed: diff, retry (your user), merge with force: true; explain says why',
    facts: {
      ...facts,
      ...{ event: 'answer', allowed: ['diff', 'retry (your user)', 'merge with force: true'] },
    },
  });
});

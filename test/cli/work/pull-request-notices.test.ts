import { expect, test, vi } from 'vitest';
import { openForgeProject, writing } from '../../support/forge/project.ts';
import { secret, startReceiver } from '../../support/receiver.ts';

test('a webhook is told once for each reason for which a pull request needs a person', {
  tags: ['slow'],
}, async () => {
  const receiver = await startReceiver();
  const { agent, github, start, complete, untilPr } = await openForgeProject(
    [writing('Add a page')],
    { on_checks: 'ask' },
  );
  const webhook = {
    ...{ url: receiver.url, allow_private: true, secret_env: 'HOOK_SECRET' },
    events: ['pull_request_needs_you'],
  };
  const set = await agent('config', 'set', 'notify.webhooks', JSON.stringify([webhook]));
  expect(set.code, set.err).toBe(0);
  await agent('server', 'stop');
  const started = await start({ HOOK_SECRET: secret });
  expect(started.code, started.err).toBe(0);
  const id = await complete('Add a page');
  await agent('publish', id);
  const head = github.bare.tip(`agent/${id}/pr`) ?? '';

  github.person.check(head, 'ci/test', 'failure');
  await untilPr(id, { checks: 'red' });
  // Another change, while it waits for the same reason.
  github.person.review(1, 'olga', 'APPROVED');
  await untilPr(id, { checks: 'red', review: 'approved' });
  github.state.runs.length = 0;
  github.person.check(head, 'ci/test', 'success');
  await untilPr(id, { checks: 'green', waits_for: 'person' });
  await vi.waitFor(() => expect(receiver.received).toHaveLength(2), 15_000);

  expect(receiver.received.map(({ type, data }) => [type, data.task_id, data.reason])).toEqual([
    ['pull_request_needs_you', id, '1 check failed: ci/test'],
    ['pull_request_needs_you', id, expect.stringContaining('merges it')],
  ]);
  expect(receiver.received[0]?.data).toMatchObject({
    ...{ title: 'Add a page', status: 'complete', attempt: 1 },
    url: expect.stringMatching(/\/acme\/shop\/pull\/1$/),
  });
});

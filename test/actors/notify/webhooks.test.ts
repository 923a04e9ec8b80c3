import { expect, onTestFinished, test, vi } from 'vitest';
import { type NoticeType, noticeTypes } from '../../../src/actors/notify/notice.ts';
import { startNotices } from '../../../src/actors/notify/start-notices.ts';
import { createDeliveryCursors } from '../../../src/actors/store/rows/delivery-cursors.ts';
import { crash } from '../../support/crash.ts';
import { finished, noQuota, startProvider, untilParked } from '../../support/provider-limits.ts';
import { secretBytes, startReceiver } from '../../support/receiver.ts';
import {
  bash,
  finish,
  hang,
  type Running,
  type Setting,
  startSystem,
  untilStatus,
} from '../../support/running.ts';

interface Asked {
  readonly url: string;
  readonly events?: readonly NoticeType[];
  readonly allowPrivate?: boolean;
  readonly requestMs?: number;
}

const told = async (
  running: Running,
  { url, events = noticeTypes, allowPrivate = true, requestMs = 60_000 }: Asked,
) => {
  const notices = await startNotices({
    webhooks: [
      { key: 'k', url: new URL(url), events: new Set(events), secret: secretBytes, allowPrivate },
    ],
    hooks: [],
    journal: running.system.journal,
    store: running.store,
    cursors: createDeliveryCursors(running.ledger.db),
    project: { key: 'p', name: 'project' },
    cwd: running.root,
    environment: {},
    now: Date.now,
    log: running.log,
    times: { requestMs, firstPauseMs: 0.1 },
  });
  onTestFinished(notices.stop);
  return notices;
};

const start = async (setting: Setting, asked: Asked) => {
  const running = await startSystem(setting);
  return { ...running, notices: await told(running, asked) };
};

const begin = async ({ service }: Pick<Running, 'service'>, description = 'say hello') => {
  const { task_id } = await service.create({ description });
  await service.execute({ task: task_id, role: 'engineer', options: {} });
  return task_id;
};

const givenUp = (running: Running) =>
  running.logged.filter(({ message }) => message === 'gave up sending this event to a webhook');

test('a receiver gets each event of a task once, signed, with nothing but what it needs', async () => {
  const receiver = await startReceiver();
  const running = await start(
    { turns: [bash('true'), finish('the answer is a teapot')], role: { approvals: ['bash'] } },
    receiver,
  );

  const id = await begin(running);
  await receiver.until(() => receiver.received.length === 1);
  const { awaiting } = await running.service.status(id);
  const inputId = awaiting?.input_id ?? '';
  await running.service.respond(id, 1, { type: 'respond', inputId, text: null, decision: 'allow' });
  await untilStatus(running, id, 'complete');
  await receiver.until(() => receiver.received.length === 2);

  expect(receiver.faults).toEqual([]);
  const [asked, completed] = receiver.received;
  expect(asked).toMatchObject({
    type: 'approval_required',
    data: { project: 'project', task_id: id, title: 'say hello', status: 'started', attempt: 1 },
  });
  expect(asked?.data.reason).toBe('The agent wants to make these calls. May it?');
  expect(completed).toMatchObject({ type: 'completed', data: { status: 'complete' } });
  expect(JSON.stringify(receiver.received)).not.toContain('teapot');
  expect(new Set(receiver.ids).size).toBe(2);
  expect(running.notices.check()).toEqual({ ok: true, detail: '1 webhook without a problem' });
});

test('a question that is asked again after a restart waits since it was asked, and is told once', async () => {
  const setting: Setting = { turns: [bash('true'), finish()], role: { approvals: ['bash'] } };
  const receiver = await startReceiver();
  const first = await start(setting, receiver);
  const id = await begin(first);
  await receiver.until(() => receiver.received.length === 1);
  const before = await first.service.status(id);
  await first.notices.stop();

  const next = await startSystem(await crash(first, setting));
  await told(next, receiver);
  await vi.waitFor(async () =>
    expect((await next.service.status(id)).awaiting).toEqual(before.awaiting),
  );
  const { awaiting, waits_since } = await next.service.status(id);
  const inputId = awaiting?.input_id ?? '';
  await next.service.respond(id, 1, { type: 'respond', inputId, text: null, decision: 'allow' });
  await untilStatus(next, id, 'complete');
  await receiver.until(() => receiver.received.length === 2);

  expect(waits_since).toBe(before.waits_since);
  const asked = next.store
    .read({ taskId: id, after: 0, limit: 1_000 })
    .filter(({ type }) => type === 'approval_required')
    .map(({ data }) => JSON.parse(data));
  expect(asked).toEqual([before.awaiting, { ...before.awaiting, again: true }]);
  expect(receiver.received.map(({ type }) => type)).toEqual(['approval_required', 'completed']);
});

test('failed, cancelled and parked tasks, and the choice of events', async () => {
  const receiver = await startReceiver();
  let asked = 0;
  const { model } = await startProvider(() => {
    asked += 1;
    return asked === 1 ? noQuota(600) : finished;
  });
  const running = await start({ model }, { ...receiver, events: ['parked', 'cancelled'] });

  const id = await begin(running);
  await untilParked(running, id);
  await running.service.cancel(id, 'no money');
  await receiver.until(() => receiver.received.length === 2);

  expect(receiver.received).toMatchObject([
    { type: 'parked', data: { status: 'queued', reason: expect.stringContaining('used up') } },
    { type: 'cancelled', data: { status: 'cancelled', reason: 'no money' } },
  ]);
  const failing = await startSystem({ turns: [finish('I could not', 'failed')] });
  const other = await startReceiver();
  await told(failing, other);
  await begin(failing);
  await other.until(() => other.received.length === 1);
  expect(other.received).toMatchObject([
    { type: 'failed', data: { reason: expect.stringContaining('I could not') } },
  ]);
});

test('500 is tried again with the same id, and a receiver that hangs is left after its time', async () => {
  const receiver = await startReceiver((response, request) => {
    if (request === 1) return false;
    response.writeHead(request === 2 ? 500 : 200).end();
    return request > 2;
  });
  const running = await start({ turns: [finish()] }, { ...receiver, requestMs: 200 });

  await begin(running);
  await receiver.until(() => receiver.received.length === 1);

  expect(receiver.requests()).toBe(3);
  expect(new Set(receiver.ids).size).toBe(1);
  expect(givenUp(running)).toEqual([]);
});

test('an event is given up after eight tries, with one line, and the next one is sent', async () => {
  const receiver = await startReceiver((response, request) => {
    response.writeHead(request <= 8 ? 503 : 200).end();
    return request > 8;
  });
  const running = await start({ turns: [finish()] }, receiver);

  const first = await begin(running);
  await vi.waitFor(() => expect(givenUp(running)).toHaveLength(1));
  const health = running.notices.check();
  const second = await begin(running);
  await receiver.until(() => receiver.received.length === 1);

  expect(givenUp(running)[0]?.facts).toMatchObject({
    ...{ task_id: first, attempt: 1, event: 'completed', tries: 8 },
    problem: 'the receiver answered 503',
  });
  expect(health).toMatchObject({ ok: false });
  expect(health?.detail).toBe(`${new URL(receiver.url).host}: the receiver answered 503`);
  expect(receiver.received[0]?.data.task_id).toBe(second);
  expect(JSON.stringify(running.logged)).not.toContain('/hook');
});

test('a redirect to a metadata service is not followed', async () => {
  const target = await startReceiver();
  const receiver = await startReceiver((response, request) => {
    const location = request === 1 ? 'http://169.254.169.254/latest/meta-data/' : target.url;
    response.writeHead(307, { location }).end();
    return true;
  });
  const running = await start({ turns: [finish()] }, receiver);

  await begin(running);
  await begin(running);
  await vi.waitFor(() => expect(givenUp(running)).toHaveLength(2));

  expect(receiver.requests()).toBe(2);
  expect(target.requests()).toBe(0);
  expect(givenUp(running)[0]?.facts['problem']).toBe(
    'the receiver answered 307; redirects are not followed',
  );
});

test.each([
  ['an address of this machine', '127.0.0.1', false],
  ['a number that means this machine', '2130706433', false],
  ['an IPv4 address in IPv6 form', '[::ffff:127.0.0.1]', false],
  ['an old IPv6 form of an IPv4 address', '[::127.0.0.1]', false],
  ['an IPv6 address that stands for an IPv4 address', '[::ffff:0:7f00:1]', false],
  ['an IPv6 address of documents', '[3fff::1]', false],
  ['a name that leads to this machine', 'localhost', false],
  ['every address of this machine', '0.0.0.0', true],
  ['a metadata service', '169.254.169.254', true],
  ['a metadata service in IPv6 form', '[::ffff:169.254.169.254]', true],
  ['a link-local address', '[fe80::1]', true],
  ['a metadata service by way of NAT64', '[64:ff9b::a9fe:a9fe]', true],
])('%s is never called', async (_, host, allowPrivate) => {
  const receiver = await startReceiver();
  const url = `http://${host}:${receiver.port}/hook`;
  const running = await start({ turns: [finish()] }, { url, allowPrivate });

  await begin(running);
  await vi.waitFor(() => expect(givenUp(running)).toHaveLength(1));

  expect(receiver.requests()).toBe(0);
  expect(givenUp(running)[0]?.facts).toMatchObject({
    tries: 1,
    problem: expect.stringMatching(/is not a public address; /),
  });
});

test('a name is called on this machine when the user allows it', async () => {
  const receiver = await startReceiver();
  const url = `http://localhost:${receiver.port}/hook`;
  const running = await start({ turns: [finish()] }, { url });

  await begin(running);
  await receiver.until(() => receiver.received.length === 1);

  expect(receiver.faults).toEqual([]);
});

test('events that are too many wait in the journal, and a stopped server sends them when it is back', {
  tags: ['slow'],
}, async () => {
  const receiver = await startReceiver((response, request) => {
    if (request === 1) return false;
    response.writeHead(204).end();
    return true;
  });
  const running = await start({ turns: [hang] }, receiver);
  const { journal } = running.system;
  const at = Date.now();
  for (let number = 1; number <= 400; number += 1)
    journal.gather({
      entries: [
        {
          ...{ taskId: 'bd-a1', attempt: number, type: 'completed', at, data: '{}', cause: null },
        },
      ],
    });
  await journal.flush();
  await receiver.until(() => receiver.requests() === 1);
  await running.notices.stop();

  await told(running, receiver);
  await receiver.until(() => receiver.received.length === 400);

  expect(receiver.received.map(({ data }) => data.attempt)).toEqual(
    Array.from({ length: 400 }, (_, at) => at + 1),
  );
  expect(receiver.ids[0]).toBe(receiver.ids[1]);
});

import { describe, expect, test } from 'vitest';
import type { Model, ModelEvent, ModelRequest } from '../../src/actors/model/port.ts';

export const aRequest = (over: Partial<ModelRequest> = {}): ModelRequest => ({
  model: 'some-model',
  asker: { taskId: 'bd-a', role: 'engineer', title: 'A task', attempt: 1 },
  idempotencyKey: 'bd-a#1/think:1',
  system: 'You are an engineer.',
  messages: [{ role: 'user', text: 'Do it.' }],
  tools: [{ name: 'read', description: 'reads', parameters: { type: 'object', properties: {} } }],
  maxTokens: 1_000,
  ...over,
});

export const ask = async (
  model: Model,
  request = aRequest(),
  signal = new AbortController().signal,
) => {
  const events: ModelEvent[] = [];
  for await (const event of model.ask(request, signal)) events.push(event);
  return events;
};

/** For "Another task", the model of `describeModel` says "I wrote it." and calls nothing. */
const otherRequest = aRequest({
  asker: { taskId: 'bd-b', role: 'engineer', title: 'Another task', attempt: 1 },
  messages: [{ role: 'user', text: 'Do another.' }],
});

const textIn = (events: readonly ModelEvent[]): string =>
  events.flatMap((event) => (event.type === 'text' ? [event.delta] : [])).join('');

const cancelledEnd = {
  type: 'failed',
  failure: { code: 'model_failed', facts: { kind: 'cancelled' }, retryable: false },
};

/**
 * The contract of every model. `open` gives one that says "I read it." and calls `read` with
 * `{"path":"x"}`; for "Another task", whose user says "Do another.", it says "I wrote it." and
 * calls nothing.
 */
export const describeModel = (name: string, open: () => Promise<Model>) =>
  describe(`${name} model`, () => {
    test('its text comes in pieces, then exactly one last event with the whole answer', async () => {
      const events = await ask(await open());

      const last = events.at(-1);
      expect(events.slice(0, -1).every(({ type }) => type === 'text')).toBe(true);
      expect(textIn(events)).toBe('I read it.');
      expect(last).toMatchObject({ type: 'answered', text: 'I read it.', truncated: false });
    });

    test('a tool call has an id, a name and its arguments as text', async () => {
      const last = (await ask(await open())).at(-1);

      const calls = last?.type === 'answered' ? last.calls : [];
      expect(calls).toEqual([
        { id: expect.stringMatching(/.+/), tool: 'read', arguments: '{"path":"x"}' },
      ]);
    });

    test('concurrent calls do not mix', async () => {
      const model = await open();

      const [one, other] = await Promise.all([ask(model), ask(model, otherRequest)]);

      expect([textIn(one), textIn(other)]).toEqual(['I read it.', 'I wrote it.']);
      expect(one.at(-1)).toMatchObject({ text: 'I read it.', calls: [{ tool: 'read' }] });
      expect(other.at(-1)).toMatchObject({ text: 'I wrote it.', calls: [] });
    });

    test('a call that was cancelled before it began ends as cancelled, without throwing', async () => {
      expect(await ask(await open(), aRequest(), AbortSignal.abort())).toMatchObject([
        cancelledEnd,
      ]);
    });

    test('a call that is cancelled during its answer ends as cancelled, with one last event', async () => {
      const model = await open();
      const stop = new AbortController();
      const events: ModelEvent[] = [];

      for await (const event of model.ask(aRequest(), stop.signal)) {
        events.push(event);
        stop.abort();
      }

      expect(events.filter(({ type }) => type !== 'text')).toEqual([events.at(-1)]);
      expect(events.at(-1)).toMatchObject(cancelledEnd);
    });

    test('a reader may stop during an answer', async () => {
      for await (const event of (await open()).ask(aRequest(), new AbortController().signal)) {
        expect(event.type).toBe('text');
        break;
      }
    });
  });

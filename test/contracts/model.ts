import { describe, expect, test } from 'vitest';
import type { Model, ModelEvent, ModelRequest } from '../../src/actors/model/port.ts';

export const aRequest = (over: Partial<ModelRequest> = {}): ModelRequest => ({
  model: 'some-model',
  asker: { taskId: 'bd-a', role: 'engineer', title: 'A task', attempt: 1 },
  system: 'You are an engineer.',
  messages: [{ role: 'user', text: 'Do it.' }],
  tools: [{ name: 'read', description: 'reads', parameters: { type: 'object', properties: {} } }],
  maxTokens: 1_000,
  ...over,
});

export const ask = async (model: Model, request = aRequest(), signal = new AbortController().signal) => {
  const events: ModelEvent[] = [];
  for await (const event of model.ask(request, signal)) events.push(event);
  return events;
};

/** What every model does; `open` gives one that says "I read it." and calls `read` with `{"path":"x"}`. */
export const describeModel = (name: string, open: () => Promise<Model>) =>
  describe(`${name} model`, () => {
    test('its text comes in pieces, then one last event with the whole answer', async () => {
      const events = await ask(await open());

      const last = events.at(-1);
      expect(events.slice(0, -1).every(({ type }) => type === 'text')).toBe(true);
      expect(events.flatMap((event) => (event.type === 'text' ? [event.delta] : [])).join('')).toBe('I read it.');
      expect(last).toMatchObject({ type: 'answered', text: 'I read it.', truncated: false });
    });

    test('a tool call has an id, a name and its arguments as text', async () => {
      const last = (await ask(await open())).at(-1);

      const calls = last?.type === 'answered' ? last.calls : [];
      expect(calls).toEqual([{ id: expect.stringMatching(/.+/), tool: 'read', arguments: '{"path":"x"}' }]);
    });

    test('two calls at once do not mix', async () => {
      const model = await open();

      const [one, other] = await Promise.all([ask(model), ask(model)]);

      expect(one.at(-1)).toMatchObject({ text: 'I read it.' });
      expect(other.at(-1)).toMatchObject({ text: 'I read it.' });
    });

    test('a call that was cancelled ends without an answer and without throwing', async () => {
      const stop = new AbortController();
      stop.abort();

      const events = await ask(await open(), aRequest(), stop.signal);

      expect(events.filter(({ type }) => type === 'answered')).toEqual([]);
    });
  });

import type { Compat } from './compat.ts';
import type { ModelEvent, ModelRequest } from './port.ts';
import { textCallsIn } from './text-calls.ts';

export type AskModel = (compat: Compat, request: ModelRequest) => Promise<ModelEvent | null>;

export interface CompatAttempt {
  readonly last: ModelEvent | null;
  readonly compat: Compat;
}

/**
 * True for a status that other settings may cure; an outage or a refused key stays with any
 * settings.
 */
const isMisunderstood = (event: ModelEvent | null): boolean =>
  event?.type === 'failed' &&
  event.failure.facts['kind'] === 'http' &&
  [400, 422].some((status) => status === event.failure.facts['status']);

const variantsOf = (given: Compat, changes: readonly Partial<Compat>[]): readonly Compat[] =>
  [...changes, Object.assign({}, ...changes)].map((change) => ({ ...given, ...change }));

const firstUnderstood = async (
  ask: AskModel,
  request: ModelRequest,
  given: Compat,
  changes: readonly Partial<Compat>[],
) => {
  const first: CompatAttempt = { last: await ask(given, request), compat: given };
  if (!isMisunderstood(first.last)) return first;
  for (const compat of variantsOf(given, changes)) {
    const last = await ask(compat, request);
    if (!isMisunderstood(last)) return { last, compat };
  }
  return first;
};

const nextRequest = (
  request: ModelRequest,
  answer: Extract<ModelEvent, { type: 'answered' }>,
): ModelRequest => ({
  ...request,
  messages: [
    ...request.messages,
    { role: 'assistant', text: answer.text, calls: answer.calls },
    ...answer.calls.map(({ id, tool }) => ({
      role: 'tool' as const,
      callId: id,
      tool,
      text: 'noted',
      ok: true,
    })),
    { role: 'user', text: 'Answer with the word done.' },
  ],
});

export const tryCompat = async (
  ask: AskModel,
  request: ModelRequest,
  given: Compat,
): Promise<CompatAttempt> => {
  const otherField = given.maxTokensField === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
  const first = await firstUnderstood(ask, request, given, [
    { streamOptions: false },
    { maxTokensField: otherField },
  ]);
  if (first.last?.type !== 'answered') return first;
  const printed = first.last.calls.length === 0 ? textCallsIn(first.last.text) : null;
  const takesText = printed !== null && printed.calls.length > 0;
  const answer = takesText ? { ...first.last, ...printed } : first.last;
  const compat = takesText ? { ...first.compat, textToolCalls: true } : first.compat;
  if (answer.calls.length === 0) return { last: answer, compat };
  const calls = answer.calls.map((call, index) => ({ ...call, id: call.id || `call_${index}` }));
  const changes = [{ toolResultName: true }, { replyAfterTools: true }];
  const second = await firstUnderstood(
    ask,
    nextRequest(request, { ...answer, calls }),
    compat,
    changes,
  );
  return isMisunderstood(second.last)
    ? { last: second.last, compat }
    : { last: answer, compat: second.compat };
};

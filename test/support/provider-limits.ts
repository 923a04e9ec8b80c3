import { expect, vi } from 'vitest';
import { createOpenAiChatModel } from '../../src/actors/model/openai/openai-chat.ts';
import { type Answer, type SeenRequest, startModelServer } from './model-server.ts';
import type { Running } from './running.ts';

/** A provider over a real socket that may be at a limit. */

const answerWith = (name: string, input: object): Answer => ({
  kind: 'answer',
  calls: [{ name, arguments: JSON.stringify(input) }],
});
export const finished = answerWith('finish', { status: 'done', summary: 'well' });
export const writeHalf = answerWith('write', { path: 'half.txt', content: 'half' });

export const limited = (seconds: number | string, error: object = {}): Answer => ({
  kind: 'status',
  status: 429,
  headers: { 'retry-after': String(seconds) },
  body: { error: { message: 'slow down', ...error } },
});
export const noQuota = (seconds: number): Answer =>
  limited(seconds, { code: 'insufficient_quota' });

export const startProvider = async (answer: (request: SeenRequest) => Answer) => {
  const provider = await startModelServer(answer);
  const model = createOpenAiChatModel({
    apiKey: 'sk-test-0123456789',
    baseURL: provider.baseURL,
    timeouts: {},
  });
  return { provider, model };
};

export const untilParked = ({ service }: Running, id: string) =>
  vi.waitFor(async () => {
    const view = await service.status(id);
    expect(view.parked_until).toBeDefined();
    return view;
  });

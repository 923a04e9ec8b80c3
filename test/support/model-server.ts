import { onTestFinished } from 'vitest';
import type { ModelServerOptions } from '../model-server/answer.ts';
import { createModelServer } from '../model-server/server.mjs';

export type { Answer, ModelServer, SeenRequest } from '../model-server/answer.ts';

/** `createModelServer` for one test: it closes after the test. */
export const startModelServer = async (
  answer: ModelServerOptions['answer'],
  options: Omit<ModelServerOptions, 'answer'> = {},
) => {
  const server = await createModelServer({ answer, ...options });
  onTestFinished(server.close);
  return server;
};

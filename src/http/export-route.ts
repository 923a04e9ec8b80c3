import type { FastifyInstance } from 'fastify';
import { createSerialQueue, QueueFullError } from '../actors/process/serial-queue.ts';
import { type OnRequest, refuseRate } from './rpc-routes.ts';

export interface ExportOptions {
  /** The file of `agent export`. @throws task_not_found */
  readonly exportTask: (taskId: string) => Promise<string>;
}

/** A file is made in memory and may have 25 MB: one after the other. */
const waitingAtMost = 4;

export const addExportRoute = (
  app: FastifyInstance,
  { exportTask }: ExportOptions,
  onRequest: OnRequest,
): void => {
  const queue = createSerialQueue(waitingAtMost);
  app.get<{ Params: { task_id: string } }>(
    '/export/:task_id',
    { onRequest },
    async (request, reply) => {
      try {
        const file = await queue(() => exportTask(request.params.task_id));
        return reply
          .type('text/html; charset=utf-8')
          .header('content-disposition', 'attachment')
          .send(Buffer.from(file));
      } catch (error) {
        if (error instanceof QueueFullError) return refuseRate(reply);
        throw error;
      }
    },
  );
};

import type { Inspection } from '../actors/engine/inspection.ts';
import type { SseConnection } from './sse.ts';

const inspectionBytesAtMost = 4 * 1024 * 1024;

/** The messages have no event name and no id. */
export const inspectionStream = (connection: SseConnection, inspection: Inspection): void => {
  const leave = inspection.subscribe((message) => {
    if (connection.buffered() > inspectionBytesAtMost) connection.end();
    else connection.write(`data: ${message}\n\n`);
  });
  connection.onClose(leave);
};

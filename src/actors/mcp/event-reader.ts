import { createLineSplitter } from '../process/line-splitter.ts';
import { maxMessageLength } from './peer.ts';
import { McpError } from './port.ts';

/** Reads the data of server-sent events. @throws McpError in `push` when one is too long */
export const createEventReader = (onData: (data: string) => void) => {
  const tooLong = (): never => {
    throw new McpError(`it sends an event of more than ${maxMessageLength} characters`);
  };
  let data: string[] = [];
  let length = 0;
  const lines = createLineSplitter({
    longest: maxMessageLength,
    keepsEmpty: true,
    onDropped: tooLong,
    onLine: (line) => {
      if (line === '') {
        const whole = data.join('\n');
        [data, length] = [[], 0];
        if (whole !== '') onData(whole);
      } else if (line.startsWith('data:')) {
        data.push(line.slice('data:'.length).trim());
        length += line.length;
        if (length > maxMessageLength) tooLong();
      }
    },
  });
  return { push: lines.push };
};

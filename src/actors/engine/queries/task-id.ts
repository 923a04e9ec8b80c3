import { ServiceError } from '../../../machines/errors.ts';
import { parseTaskId, type TaskId } from '../../../machines/task.ts';

/** For error messages: without control characters, cut. */
const printable = (text: string): string => {
  const plain = text.replace(/[\p{Cc}\p{Cf}]/gu, '?');
  return plain.length > 100 ? `${plain.slice(0, 100)}…` : plain;
};

/** @throws invalid_params when it is empty, task_not_found when it is malformed */
export const requireId = (text: string): TaskId => {
  if (text === '')
    throw new ServiceError('invalid_params', {
      fields: [{ path: 'task_id', problem: 'is empty' }],
    });
  const id = parseTaskId(text);
  if (id === null) throw new ServiceError('task_not_found', { task_id: printable(text) });
  return id;
};

/** @throws task_not_found with all that are malformed */
export const requireIds = (texts: readonly string[]): readonly TaskId[] => {
  const [first, ...others] = texts.filter((text) => text !== '' && parseTaskId(text) === null);
  if (first !== undefined && others.length > 0)
    throw new ServiceError('task_not_found', {
      task_id: printable(first),
      others: others.map(printable),
    });
  return texts.map(requireId);
};

/** Text with a space is a description; anything else must be an id. */
export const isFreeText = (task: string): boolean => /\s/.test(task.trim());

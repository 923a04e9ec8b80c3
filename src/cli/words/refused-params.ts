import { isJsonObject } from '../../machines/json.ts';
import { CallError } from '../client/client.ts';

/**
 * Names what a server refused as it was written. `wordOf`: the word of the command line for a path
 * of the request, such as `--comment` for `comments.0.line`.
 */
export const inWordsOfCommand = (error: unknown, wordOf: (path: string) => string): unknown => {
  if (!(error instanceof CallError) || error.code !== 'invalid_params') return error;
  const fields = Array.isArray(error.facts['fields']) ? error.facts['fields'] : [];
  const problems = fields
    .filter(isJsonObject)
    .map(({ path, problem }) => `${wordOf(String(path))}: ${String(problem)}`);
  return problems.length === 0
    ? error
    : new CallError(error.code, problems.join('; '), error.facts, error);
};

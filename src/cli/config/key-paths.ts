import { isJsonObject } from '../../machines/json.ts';
import { UsageError } from '../words/usage-error.ts';
import type { ConfigLayer } from './config.ts';

/** `api.prices."gpt-5.1"`: a name with dots stands in quotes. @throws UsageError */
export const partsOfKey = (key: string): readonly string[] => {
  const parts = [...key.matchAll(/(?:^|\.)(?:"([^"]*)"|([^."]+))/g)];
  if (parts.map(([text]) => text).join('') !== key)
    throw new UsageError(
      `${key} is no key; put a name with dots in quotes: 'api.prices."gpt-5.1"'`,
    );
  return parts.map(([, quoted, plain]) => quoted ?? plain ?? '');
};

/** The value of a key such as `server.port`. */
export const valueAt = (tree: unknown, key: string): unknown =>
  partsOfKey(key).reduce<unknown>(
    (value, part) => (isJsonObject(value) ? value[part] : undefined),
    tree,
  );

/** The file, variable or flag that set the key; `default` where none did. */
export const originOf = (layers: readonly ConfigLayer[], key: string): string =>
  layers.findLast(({ tree }) => valueAt(tree, key) !== undefined)?.source ?? 'default';

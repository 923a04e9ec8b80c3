import { isJsonObject } from '../../machines/json.ts';
import { partsOfKey } from './schema/config-keys.ts';

/** What one file, variable or flag sets. */
export interface ConfigLayer {
  readonly source: string;
  readonly tree: Readonly<Record<string, unknown>>;
}

/** The value of a key such as `server.port`. */
export const valueAt = (tree: unknown, key: string): unknown =>
  partsOfKey(key).reduce<unknown>(
    (value, part) => (isJsonObject(value) ? value[part] : undefined),
    tree,
  );

/** The file, variable or flag that set the key; `default` where none did. */
export const originOf = (layers: readonly ConfigLayer[], key: string): string =>
  layers.findLast(({ tree }) => valueAt(tree, key) !== undefined)?.source ?? 'default';

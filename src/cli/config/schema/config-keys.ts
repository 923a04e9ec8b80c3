import { z } from 'zod';
import { UsageError } from '../../words/usage-error.ts';
import { configSections } from './config-schema.ts';

type Node = z.core.JSONSchema.JSONSchema | boolean | undefined;

const keysIn = (node: Node, path: string): readonly (readonly [key: string, says: string])[] => {
  if (typeof node !== 'object') return [];
  const entries = Object.entries(node.properties ?? {});
  if (entries.length === 0) return path === '' ? [] : [[path, node.description ?? '']];
  return entries.flatMap(([key, inner]) => keysIn(inner, path === '' ? key : `${path}.${key}`));
};

/** Every key of the configuration, such as `server.port`, and what it means. */
export const configKeys = (): readonly (readonly [key: string, says: string])[] =>
  keysIn(z.toJSONSchema(configSections, { io: 'input', unrepresentable: 'any' }), '');

const priceKey = /^api\.prices\.([^"]+?)(?:\.(\w+_per_million))?$/;

/**
 * A name with dots stands in quotes, as in `roles."a.b"`; the name of a model needs none:
 * `api.prices.gpt-5.1.input_per_million`. @throws UsageError
 */
export const partsOfKey = (key: string): readonly string[] => {
  const [, model, price] = priceKey.exec(key) ?? [];
  if (model !== undefined) return ['api', 'prices', model, ...(price === undefined ? [] : [price])];
  const parts = [...key.matchAll(/(?:^|\.)(?:"([^"]*)"|([^."]+))/g)];
  if (parts.map(([text]) => text).join('') !== key)
    throw new UsageError(
      `${key} is no key; put a name with dots in quotes: 'api.prices."gpt-5.1"'`,
    );
  return parts.map(([, quoted, plain]) => quoted ?? plain ?? '');
};

/** Tells lists and objects from other values. */
export const kindOfKey = (key: string): 'list' | 'object' | 'other' => {
  const root: Node = z.toJSONSchema(configSections, { io: 'input', unrepresentable: 'any' });
  const node = partsOfKey(key).reduce<Node>(
    (at, part) =>
      typeof at === 'object' ? (at.properties?.[part] ?? at.additionalProperties) : undefined,
    root,
  );
  if (typeof node !== 'object') return 'other';
  if (node.type === 'array') return 'list';
  return node.type === 'object' ? 'object' : 'other';
};

const placesIn = (node: Node, name: string, path: readonly string[]): readonly string[] => {
  if (typeof node !== 'object') return [];
  const inner: readonly (readonly [string, Node])[] = [
    ...Object.entries(node.properties ?? {}),
    ...(node.additionalProperties === undefined
      ? []
      : [['<name>', node.additionalProperties] as const]),
  ];
  return inner.flatMap(([key, value]) => [
    ...(key === name ? [[...path, key].join('.')] : []),
    ...placesIn(value, name, [...path, key]),
  ]);
};

/** @returns where a key of this name is known: `verify` as `roles.<name>.verify` */
export const placesOfKey = (name: string): readonly string[] =>
  placesIn(z.toJSONSchema(configSections, { io: 'input', unrepresentable: 'any' }), name, []);

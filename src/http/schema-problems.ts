import { z } from 'zod';
import { isJsonObject } from '../machines/json.ts';
import { plural } from '../machines/plural.ts';

/** `problem` is a phrase that follows the path. */
export interface SchemaProblem {
  readonly path: readonly PropertyKey[];
  readonly problem: string;
  readonly knownKeys?: readonly string[];
}

export type Parsed<Output> =
  | { readonly ok: true; readonly value: Output }
  | { readonly ok: false; readonly problems: readonly SchemaProblem[] };

type JsonSchema = z.core.JSONSchema.JSONSchema;

const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null;

/** Picks the schema of this value's kind. */
const matchingKind = (schema: JsonSchema, value: unknown): JsonSchema => {
  const kinds = (schema.oneOf ?? schema.anyOf ?? []).filter(isSchema);
  const fits = ({ properties = {} }: JsonSchema): boolean =>
    Object.entries(properties).some(
      ([key, each]) =>
        isSchema(each) &&
        each.const !== undefined &&
        isJsonObject(value) &&
        value[key] === each.const,
    );
  return kinds.find(fits) ?? schema;
};

const schemaAt = (schema: JsonSchema, path: readonly PropertyKey[], whole: unknown): JsonSchema => {
  let found = matchingKind(schema, whole);
  let value = whole;
  for (const key of path) {
    const next = found.properties?.[String(key)] ?? found.additionalProperties ?? found.items;
    value = typeof value === 'object' && value !== null ? (value as never)[key] : undefined;
    found = isSchema(next) ? matchingKind(next, value) : {};
  }
  return found;
};

const keysOf = ({ properties, propertyNames }: JsonSchema): readonly string[] =>
  properties === undefined && isSchema(propertyNames)
    ? (propertyNames.enum ?? []).map(String)
    : Object.keys(properties ?? {});

const orList = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;

const hasLimit = (limit: number | undefined): limit is number =>
  limit !== undefined && Math.abs(limit) !== Number.MAX_SAFE_INTEGER;

const range = ({ minimum, maximum, exclusiveMinimum }: JsonSchema): string => {
  const most = hasLimit(maximum) ? maximum : undefined;
  if (exclusiveMinimum !== undefined)
    return ` above ${exclusiveMinimum}${most === undefined ? '' : ` and at most ${most}`}`;
  if (!hasLimit(minimum)) return most === undefined ? '' : ` of at most ${most}`;
  return most === undefined ? ` of at least ${minimum}` : ` from ${minimum} to ${most}`;
};

const size = (
  least: number | undefined,
  most: number | undefined,
  noun: string,
  many?: string,
): string => {
  if (most === undefined)
    return least === undefined ? '' : ` of at least ${plural(least, noun, many)}`;
  const atMost = plural(most, noun, many);
  return least === undefined ? ` of at most ${atMost}` : ` of ${least} to ${atMost}`;
};

const expectation = (schema: JsonSchema): string => {
  const { type, enum: choices, const: only } = schema;
  if (choices !== undefined) return orList(choices.map(String));
  if (only !== undefined) return String(only);
  if (type === 'integer') return `a whole number${range(schema)}`;
  if (type === 'number') return `a number${range(schema)}`;
  if (type === 'boolean') return 'true or false';
  if (type === 'string') return `text${size(schema.minLength, schema.maxLength, 'character')}`;
  if (type === 'array')
    return `a list${size(schema.minItems, schema.maxItems, 'entry', 'entries')}`;
  return type === 'object' ? 'an object' : 'another value';
};

const hasWords = (schema: JsonSchema): boolean => expectation(schema) !== 'another value';

const problemsAtMost = 60;

/** Shows only the length of free text, which may hold a secret. */
const givenText = (value: unknown, { type, enum: choices }: JsonSchema): string => {
  if (Array.isArray(value))
    return value.length === 0 ? 'an empty list' : `a list of ${value.length}`;
  if (typeof value === 'object' && value !== null) return 'an object';
  if (typeof value !== 'string') return String(value);
  if (value === '') return 'empty text';
  const isFreeText = type === 'string' && choices === undefined;
  return isFreeText || value.length > problemsAtMost
    ? `text of ${plural(value.length, 'character')}`
    : JSON.stringify(value);
};

/** Parses a value. Problems have our own text, unless the schema names a message. */
export const parseWithProblems = <Output>(
  schema: z.ZodType<Output>,
  value: unknown,
): Parsed<Output> => {
  const plain = schema.safeParse(value);
  if (plain.success) return { ok: true, value: plain.data };
  const whole = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  const parsed = schema.safeParse(value, {
    error: ({ code, input, path = [] }) => {
      const expected = schemaAt(whole, path, value);
      if (code === 'unrecognized_keys') return 'is not known here';
      return input === undefined
        ? `is missing${hasWords(expected) ? `; expected ${expectation(expected)}` : ''}`
        : `expected ${expectation(expected)}, got ${givenText(input, expected)}`;
    },
  });
  const problems = (parsed.error?.issues ?? []).flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({
          path: [...issue.path, key],
          problem: issue.message,
          knownKeys: keysOf(schemaAt(whole, issue.path, value)),
        }))
      : [{ path: issue.path, problem: issue.message }],
  );
  return { ok: false, problems };
};

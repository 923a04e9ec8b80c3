import { code } from './markdown.mjs';

const largest = Number.MAX_SAFE_INTEGER;

const bounds = ({ minimum, maximum, exclusiveMinimum }) => {
  const low = minimum === undefined || minimum === -largest ? null : minimum;
  const high = maximum === undefined || maximum === largest ? null : maximum;
  if (exclusiveMinimum !== undefined)
    return high === null ? ` above ${exclusiveMinimum}` : `, up to ${high}`;
  if (low !== null && high !== null) return ` ${low} to ${high}`;
  if (low !== null) return ` from ${low}`;
  return high === null ? '' : ` up to ${high}`;
};

/** The type of a JSON schema in words, such as "integer 1 to 20". */
export const typeOf = (schema) => {
  if (schema.enum !== undefined) return schema.enum.map((value) => code(value)).join(', ');
  if (schema.const !== undefined) return code(schema.const);
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeOf).join(' or ');
  if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1);
  if (schema.type === 'array') return `list of ${typeOf(schema.items)}`;
  if (schema.type === 'integer' || schema.type === 'number')
    return `${schema.type}${bounds(schema)}`;
  if (schema.format === 'date-time') return 'time (RFC 3339)';
  if (schema.format === 'uri') return 'address';
  return schema.type ?? 'any value';
};

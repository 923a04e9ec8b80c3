import { createHash } from 'node:crypto';
import { isJsonObject, type JsonObject } from '../../machines/json.ts';
import { keepHead } from '../process/head-tail-buffer.ts';
import { type McpCallResult, type McpTool, mcpPrefix } from './port.ts';

/** The limits of one server: what exceeds them is left out, and the reason is told. */
const maxTools = 128;
const maxDescriptionBytes = 4 * 1024;
const maxSchemaBytes = 32 * 1024;
const maxListBytes = 256 * 1024;
const maxDepth = 16;
/** Providers refuse longer names. */
const toolNameLength = 64;

/** Without control and invisible characters, which could hide words from people. */
export const visibleText = (text: string): string =>
  text.replace(/[^\P{Cc}\n\t]+|[\p{Cf}\p{Co}\p{Cs}]+/gu, '');

const keptValues: ReadonlySet<string> = new Set([
  ...['type', 'title', 'description', 'default', 'enum', 'const', 'examples', 'format', 'pattern'],
  ...['required', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['minLength', 'maxLength', 'minItems', 'maxItems', 'uniqueItems', '$ref'],
]);
const schemaMaps: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions']);
const schemaLists: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems']);
const typeNames = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];

const cleanValue = (value: unknown, depth: number): unknown => {
  if (depth > maxDepth) return null;
  if (typeof value === 'string') return visibleText(value);
  if (Array.isArray(value)) return value.map((each) => cleanValue(each, depth + 1));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [visibleText(key), cleanValue(each, depth + 1)]),
  );
};

const isType = (value: unknown): boolean =>
  Array.isArray(value) ? value.every(isType) : typeNames.some((name) => name === value);

const cleanKeyword = (key: string, value: unknown, depth: number): unknown => {
  if (schemaMaps.has(key) && isJsonObject(value))
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [
        visibleText(name),
        cleanSchema(each, depth + 1),
      ]),
    );
  if (schemaLists.has(key) && Array.isArray(value))
    return value.map((each) => cleanSchema(each, depth + 1));
  if (key === 'items') return cleanSchema(value, depth + 1);
  if (key === 'additionalProperties')
    return typeof value === 'boolean' ? value : cleanSchema(value, depth + 1);
  if (key === 'type') return isType(value) ? value : undefined;
  if (key === '$ref') return typeof value === 'string' && value.startsWith('#') ? value : undefined;
  return keptValues.has(key) ? cleanValue(value, depth) : undefined;
};

/** The keywords that providers know: one refuses a whole request over a schema that it does not. */
const cleanSchema = (schema: unknown, depth = 0): JsonObject => {
  if (!isJsonObject(schema) || depth > maxDepth) return {};
  return Object.fromEntries(
    Object.entries(schema)
      .map(([key, value]) => [key, cleanKeyword(key, value, depth)] as const)
      .filter(([, value]) => value !== undefined),
  );
};

/** Providers want an object at the top, without alternatives. */
const cleanParameters = (schema: unknown): JsonObject => {
  const { anyOf: _, oneOf: __, allOf: ___, enum: ____, $ref: _____, ...top } = cleanSchema(schema);
  return {
    ...top,
    type: 'object',
    properties: isJsonObject(top['properties']) ? top['properties'] : {},
  };
};

const sortedKeys = (_: string, value: unknown): unknown =>
  isJsonObject(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value;

const toolHash = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value, sortedKeys)).digest('hex');

/** @returns null for a name that no person could read */
const modelName = (server: string, tool: string): string | null => {
  if (!/^[\w./ :@-]{1,128}$/.test(tool)) return null;
  const name = `${mcpPrefix}${server}__${tool.replace(/[^\w-]/g, '_')}`;
  return name.length <= toolNameLength
    ? name
    : `${name.slice(0, toolNameLength - 9)}_${toolHash(tool).slice(0, 8)}`;
};

const cleanTool = (server: string, given: unknown): McpTool | string => {
  const { name: tool, description = '', inputSchema } = isJsonObject(given) ? given : {};
  if (typeof tool !== 'string') return 'a tool without a name';
  const name = modelName(server, tool);
  if (name === null)
    return `a tool whose name is not plain text (${visibleText(tool).replace(/\s/g, ' ').slice(0, 40)})`;
  const parameters = cleanParameters(inputSchema);
  if (JSON.stringify(parameters).length > maxSchemaBytes)
    return `${name}, whose arguments are described in more than ${maxSchemaBytes / 1024} KiB`;
  const said = typeof description === 'string' ? visibleText(description).trim() : '';
  const shown = `[of the MCP server ${server}] ${keepHead(said, maxDescriptionBytes)}`.trim();
  return {
    name,
    server,
    tool,
    parameters,
    description: shown,
    fingerprint: toolHash([tool, shown, parameters]),
  };
};

export interface CleanList {
  readonly tools: readonly McpTool[];
  /** The tools that were left out, each with the reason. */
  readonly left: readonly string[];
}

/**
 * Keeps the part of a server's list that a model may see. A name that is taken stays with its first
 * tool.
 */
export const cleanTools = (server: string, given: readonly unknown[]): CleanList => {
  const tools: McpTool[] = [];
  const left: string[] = [];
  let bytes = 0;
  for (const each of given) {
    const tool = cleanTool(server, each);
    if (typeof tool === 'string') {
      left.push(tool);
      continue;
    }
    const size = JSON.stringify([tool.description, tool.parameters]).length;
    if (tools.some(({ name }) => name === tool.name)) left.push(`a second ${tool.name}`);
    else if (tools.length >= maxTools || bytes + size > maxListBytes)
      left.push(`${tool.name}: the list is too long`);
    else {
      bytes += size;
      tools.push(tool);
    }
  }
  return { tools, left };
};

const contentSize = (data: unknown): string =>
  typeof data === 'string' ? `${Math.ceil((data.length * 3) / 4)} bytes` : 'no data';

/** One part of a result; a model gets no pictures and no sound. */
const partText = (part: unknown): string => {
  if (!isJsonObject(part)) return '';
  const { type, text, data, mimeType, uri, resource } = part;
  if (type === 'text') return typeof text === 'string' ? text : '';
  if (type === 'resource' && isJsonObject(resource)) {
    const { text: content, blob } = resource;
    if (typeof content === 'string') return content;
    return `[resource ${String(resource['uri'])}, ${contentSize(blob)}, is not shown]`;
  }
  if (type === 'resource_link') return `[resource ${String(uri)}]`;
  return `[${String(type)}, ${String(mimeType)}, ${contentSize(data)}, is not shown]`;
};

/** The result of `tools/call`, as a model reads it. */
export const resultText = (result: unknown): McpCallResult => {
  const { content, structuredContent, isError } = isJsonObject(result) ? result : {};
  const parts = Array.isArray(content) ? content.map(partText).filter((text) => text !== '') : [];
  const structured =
    parts.length === 0 && structuredContent !== undefined ? JSON.stringify(structuredContent) : '';
  return { ok: isError !== true, text: parts.join('\n') || structured || '(no output)' };
};

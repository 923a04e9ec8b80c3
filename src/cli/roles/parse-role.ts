import { LineCounter, parseDocument } from 'yaml';
import type { z } from 'zod';
import { decodeUtf8 } from '../../actors/files/text.ts';
import type { Checked } from '../../actors/tools/confine.ts';
import { parseWithProblems, type SchemaProblem } from '../../http/schema-problems.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { Role } from '../../machines/task.ts';
import { oneLine } from '../output/safe-text.ts';

const maxProblem = 400;
const refusedRole = (text: string) => ({ ok: false, text: oneLine(text, maxProblem) }) as const;

/** A parser that quotes the text of each fault takes seconds over a text full of them. */
export const quietly = (lineCounter: LineCounter) =>
  ({ lineCounter, logLevel: 'error', prettyErrors: false }) as const;

const deepestFlow = 64;

/**
 * The offset of a bracket that is nested too deeply, or null: the parser takes seconds over some
 * thousands of them. Brackets in texts count, too, when nothing closes them.
 */
export const deepBracketIn = (yaml: string): number | null => {
  let depth = 0;
  for (let at = 0; at < yaml.length; at += 1) {
    const character = yaml[at];
    if (character === '[' || character === '{') depth += 1;
    else if ((character === ']' || character === '}') && depth > 0) depth -= 1;
    if (depth > deepestFlow) return at;
  }
  return null;
};

/** One document of plain values: no alias (it could grow to any size), no tag, no duplicate key. */
const parseYaml = (text: string): Checked<unknown> => {
  if (deepBracketIn(text) !== null) return refusedRole('not YAML: it is nested too deeply');
  try {
    const lines = new LineCounter();
    const document = parseDocument(text, quietly(lines));
    const [fault] = [...document.errors, ...document.warnings];
    if (fault !== undefined)
      return refusedRole(`not YAML: ${fault.message} at line ${lines.linePos(fault.pos[0]).line}`);
    return { ok: true, value: document.toJS({ maxAliasCount: 0 }) };
  } catch (error) {
    return refusedRole(`not YAML: ${messageOf(error)}`);
  }
};

const describeRoleProblem = ({ path, problem, knownKeys }: SchemaProblem): string => {
  const key = path.join('.') || 'file';
  if (knownKeys === undefined) return `${key}: ${problem}`;
  return `${key}: cannot be set here; possible are ${knownKeys.join(', ')}`;
};

/** A problem names the key, in one line. */
export const parseRole = <Value extends { readonly name?: string }>(
  bytes: Uint8Array,
  role: Role,
  schema: z.ZodType<Value>,
): Checked<Value> => {
  const text = decodeUtf8(bytes)?.replace(/^\uFEFF/, '') ?? null;
  if (text === null) return refusedRole('not UTF-8');
  const yaml = parseYaml(text);
  if (!yaml.ok) return yaml;
  const parsed = parseWithProblems(schema, yaml.value);
  if (!parsed.ok) return refusedRole(parsed.problems.map(describeRoleProblem).join('; '));
  const { name } = parsed.value;
  if (name !== undefined && name !== role)
    return refusedRole(`name: is ${name} in the file of the ${role}`);
  return { ok: true, value: parsed.value };
};

import { type Document, isMap, isNode, isPair, isSeq, LineCounter, parseDocument } from 'yaml';
import { type Parsed, parseWithProblems, type SchemaProblem } from '../../http/schema-problems.ts';
import { messageOf } from '../../machines/message-of.ts';
import {
  type WorkflowDefinition,
  workflowDefinitionSchema,
} from '../../machines/workflow-definition.ts';
import { narrowWorkflow, workflowNarrowingSchema } from '../../machines/workflow-narrowing.ts';

export type ParsedWorkflow =
  | { readonly ok: true; readonly definition: WorkflowDefinition }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Small enough that no YAML takes long to parse. */
export const workflowMaxBytes = 256 * 1024;
const shownProblemsAtMost = 20;

const firstOf = (problems: readonly string[]): readonly string[] => {
  const more = problems.length - shownProblemsAtMost;
  return more > 0 ? [...problems.slice(0, shownProblemsAtMost), `and ${more} more`] : problems;
};

/** Offset of the node that a path leads to, or of the last one on the way that exists. */
const offsetOf = (document: Document, path: readonly PropertyKey[]): number => {
  let node: unknown = document.contents;
  let offset = isNode(node) ? (node.range?.[0] ?? 0) : 0;
  for (const key of path) {
    if (isMap(node)) {
      const pair = node.items.find((each) => isPair(each) && String(each.key) === String(key));
      if (pair === undefined) return offset;
      if (isNode(pair.key)) offset = pair.key.range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(key)];
      if (isNode(node)) offset = node.range?.[0] ?? offset;
    }
  }
  return offset;
};

const describeWorkflowProblem = ({ path, problem, knownKeys }: SchemaProblem): string => {
  const key = path.map(String).join('.') || 'the file';
  if (knownKeys === undefined) return `${key}: ${problem}`;
  const known = knownKeys.length === 0 ? '' : `; known are ${knownKeys.join(', ')}`;
  return `${key}: is not known here${known}`;
};

/** Each problem begins with the number of its line. */
const parseFile = (
  bytes: Uint8Array,
  parse: (value: unknown) => Parsed<WorkflowDefinition>,
): ParsedWorkflow => {
  if (bytes.length > workflowMaxBytes)
    return { ok: false, problems: [`has more than ${workflowMaxBytes} bytes`] };
  const lineCounter = new LineCounter();
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    const document = parseDocument(text, { lineCounter, logLevel: 'error' });
    const lineAt = (offset: number): string => `line ${lineCounter.linePos(offset).line}: `;
    const faults = [...document.errors, ...document.warnings];
    if (faults.length > 0)
      return {
        ok: false,
        problems: firstOf(
          faults.map(({ pos, message }) => `${lineAt(pos[0])}not YAML: ${message.split('\n')[0]}`),
        ),
      };
    // An alias could grow to any size.
    const parsed = parse(document.toJS({ maxAliasCount: 0 }));
    if (parsed.ok) return { ok: true, definition: parsed.value };
    const problems = parsed.problems.map(
      (problem) => `${lineAt(offsetOf(document, problem.path))}${describeWorkflowProblem(problem)}`,
    );
    return { ok: false, problems: firstOf(problems) };
  } catch (error) {
    const why = error instanceof TypeError ? 'not UTF-8' : `not YAML: ${messageOf(error)}`;
    return { ok: false, problems: [why] };
  }
};

export const parseWorkflow = (bytes: Uint8Array): ParsedWorkflow =>
  parseFile(bytes, (value) => parseWithProblems(workflowDefinitionSchema, value));

/** The definition with what a project's file asks for. */
export const parseNarrowing = (bytes: Uint8Array, definition: WorkflowDefinition): ParsedWorkflow =>
  parseFile(bytes, (value) => {
    const parsed = parseWithProblems(workflowNarrowingSchema, value);
    return parsed.ok ? narrowWorkflow(definition, parsed.value) : parsed;
  });

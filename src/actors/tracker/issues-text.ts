import { messageOf } from '../../machines/message-of.ts';
import { fileIssueSchema, type Issue } from './issue.ts';

export interface IssuesDocument {
  readonly issues: Map<string, Issue>;
  /** `_schema` header and `_type` lines of other kinds, kept word for word. */
  readonly others: readonly string[];
  readonly broken: readonly { readonly line: number; readonly problem: string }[];
  /** Set when a write was cut off: half a last line, or zeros that a power cut left where its data should be. */
  readonly torn: boolean;
}

const isOther = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  ('_schema' in value || ('_type' in value && value._type !== 'issue') || ('_type' in value && !('id' in value)));

type ParsedLine =
  | { readonly issue: Issue }
  | { readonly other: string }
  | { readonly problem: string; readonly json: boolean };

/** The line that each issue was read from or last written as: what did not change is written back word for word. */
const texts = new WeakMap<Issue, string>();

const parseLine = (text: string): ParsedLine => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { problem: messageOf(error), json: false };
  }
  if (isOther(value)) return { other: text };
  const parsed = fileIssueSchema.safeParse(value);
  if (parsed.success) {
    // The value itself, since the schema would change the order of its keys.
    const { status, priority } = parsed.data;
    const issue = { ...(value as Issue), status, priority };
    texts.set(issue, text);
    return { issue };
  }
  return {
    problem: parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; '),
    json: true,
  };
};

export const parseIssues = (text: string): IssuesDocument => {
  const issues = new Map<string, Issue>();
  const others: string[] = [];
  const broken: { line: number; problem: string }[] = [];
  const lines = text.split('\n');
  let torn = false;
  for (const [index, line] of lines.entries()) {
    if (line.trim() === '') continue;
    const parsed = parseLine(line);
    if ('issue' in parsed) issues.set(parsed.issue.id, parsed.issue);
    else if ('other' in parsed) others.push(parsed.other);
    else if (!parsed.json && (index === lines.length - 1 || line.includes('\0'))) torn = true;
    else broken.push({ line: index + 1, problem: parsed.problem });
  }
  return { issues, others, broken, torn };
};

const issueText = (issue: Issue): string => {
  const known = texts.get(issue);
  if (known !== undefined) return known;
  const text = JSON.stringify(issue);
  texts.set(issue, text);
  return text;
};

const byId = ([one]: [string, Issue], [other]: [string, Issue]): number => (one < other ? -1 : 1);

export const formatLines = (issues: readonly Issue[]): string =>
  issues.map((issue) => `${issueText(issue)}\n`).join('');

/** Sorted by id, as bd writes it, so that a change is a small difference. */
export const formatIssues = ({ issues, others }: Pick<IssuesDocument, 'issues' | 'others'>): string =>
  [...others, ...[...issues].sort(byId).map(([, issue]) => issueText(issue))].map((line) => `${line}\n`).join('');

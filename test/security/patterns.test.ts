import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { slowPattern } from './support/slow-pattern.ts';

interface Literal {
  readonly place: string;
  readonly source: string;
  readonly flags: string;
}

const sources = ['src', 'web'].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => join(folder, name)),
);

/** The text of a literal; what is put into a template counts as `10`. */
const textOf = (node: ts.Expression | undefined): string | null => {
  if (node === undefined) return '';
  if (ts.isStringLiteralLike(node)) return node.text;
  return ts.isTemplateExpression(node)
    ? node.head.text + node.templateSpans.map(({ literal }) => `10${literal.text}`).join('')
    : null;
};

const patternOf = (node: ts.Node): { source: string; flags: string } | null => {
  if (ts.isRegularExpressionLiteral(node)) {
    const end = node.text.lastIndexOf('/');
    return { source: node.text.slice(1, end), flags: node.text.slice(end + 1) };
  }
  const isMade = ts.isNewExpression(node) || ts.isCallExpression(node);
  if (!isMade || node.expression.getText() !== 'RegExp') return null;
  const [source, flags] = [node.arguments?.[0], node.arguments?.[1]].map(textOf);
  if (source == null || flags == null)
    throw new Error(`${node.getText()}: write the pattern as a literal, so that it can be checked`);
  return { source, flags };
};

const literalsIn = (file: string): readonly Literal[] => {
  const text = readFileSync(file, 'utf8');
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: Literal[] = [];
  const visit = (node: ts.Node): void => {
    const pattern = patternOf(node);
    const { line } = source.getLineAndCharacterOfPosition(node.getStart());
    if (pattern !== null) found.push({ place: `${file}:${line + 1}`, ...pattern });
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
};

describe('a slow pattern is found:', () => {
  test.each([
    ['a run that fails at each of its beginnings', /\s+$/],
    ['a run after a beginning that may stand within it', /blocked by \[([^\]]*)\]/],
    ['two runs of the same characters', /^a:\s*(.*)$/],
    ['a run within a run', /^(\w+\s?)*$/],
    ['a line that begins again in its middle', /^\{[^\n]*"Action":"/m],
  ])('%s', (_, { source, flags }) => {
    expect(slowPattern(source, flags)).not.toBeNull();
  });

  test('none in a linear one', () => {
    expect(slowPattern(/(?<!\s)\s+$/.source, '')).toBeNull();
  });
});

/** Text of agents, repositories and strangers goes through them; one that is not linear stops the server. */
test('every pattern takes linear time', () => {
  const slow = sources.flatMap(literalsIn).flatMap(({ place, source, flags }) => {
    const why = slowPattern(source, flags);
    return why === null ? [] : [`${place} /${source}/${flags} is slow: ${why}`];
  });

  expect(slow).toEqual([]);
});

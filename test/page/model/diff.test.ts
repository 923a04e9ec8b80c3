import { expect, test } from 'vitest';
import { type DiffLine, filesIn, sideBySide } from '../../../web/model/diff.ts';

const patch = `diff --git a/src/a.js b/src/a.js
index 1..2 100644
--- a/src/a.js
+++ b/src/a.js
@@ -1,3 +1,3 @@ function one
 same
-old
+new
 last
\\ No newline at end of file
diff --git "a/docs/\\303\\244.md" "b/docs/\\303\\244.md"
new file mode 100644
--- /dev/null
+++ "b/docs/\\303\\244.md"
@@ -0,0 +1,2 @@
+--- a/not/a/head
+diff --git a/x b/x
diff --git a/old.txt b/new.txt
similarity index 100%
rename from old.txt
rename to new.txt
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
`;

test('a patch is read into files, with names as people write them', () => {
  expect(
    filesIn(patch).map(({ path, note, added, removed }) => [path, note, added, removed]),
  ).toEqual([
    ['src/a.js', '', 1, 1],
    ['docs/ä.md', 'new file', 2, 0],
    ['new.txt', 'renamed from old.txt', 0, 0],
    ['gone.txt', 'deleted', 0, 1],
  ]);
});

test('the lines of a file have their numbers on both sides', () => {
  expect(filesIn(patch)[0]?.hunks[0]?.lines).toEqual([
    { kind: 'same', text: 'same', before: 1, after: 1 },
    { kind: 'removed', text: 'old', before: 2, after: null },
    { kind: 'added', text: 'new', before: null, after: 2 },
    { kind: 'same', text: 'last', before: 3, after: 3 },
  ]);
});

test('the counts of a file, which are read without its lines, are those of its lines', () => {
  for (const { hunks, added, removed, size } of filesIn(patch)) {
    const lines = hunks.flatMap((hunk) => hunk.lines);
    const count = (kind: DiffLine['kind']) => lines.filter((line) => line.kind === kind).length;
    expect([added, removed, size]).toEqual([count('added'), count('removed'), lines.length]);
  }
});

test('of 10,000 files the lines are read only for the file that is shown, and once', () => {
  const body = '@@ -1 +1,2 @@\n-old\n+one\n+two\n';
  const patches = Array.from(
    { length: 10_000 },
    (_, nth) => `diff --git a/${nth} b/${nth}\n--- a/${nth}\n+++ b/${nth}\n${body}`,
  );

  const files = filesIn(patches.join(''));

  expect(files).toHaveLength(10_000);
  expect(files.reduce((sum, { size }) => sum + size, 0)).toBe(30_000);
  const isLazy = (index: number) =>
    Object.getOwnPropertyDescriptor(files[index] ?? {}, 'hunks')?.get !== undefined;
  expect(files.every((_, index) => isLazy(index))).toBe(true);
  expect(files[9_999]?.hunks[0]?.lines.map(({ after }) => after)).toEqual([null, 1, 2]);
  expect(files[9_999]?.hunks).toBe(files[9_999]?.hunks);
});

test('an empty patch has no files', () => {
  expect(filesIn('')).toEqual([]);
});

test('side by side, an added line stands beside the removed one it replaces', () => {
  const line = (kind: DiffLine['kind'], text: string): DiffLine => ({
    ...{ kind, text, before: null, after: null },
  });
  const lines = [
    ...[line('same', 'a'), line('removed', 'b'), line('removed', 'c'), line('added', 'B')],
    ...[line('same', 'd'), line('added', 'e')],
  ];

  const texts = sideBySide(lines).map(({ left, right }) => [
    left?.text ?? null,
    right?.text ?? null,
  ]);

  expect(texts).toEqual([
    ['a', 'a'],
    ['b', 'B'],
    ['c', null],
    ['d', 'd'],
    [null, 'e'],
  ]);
});

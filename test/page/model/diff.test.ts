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

test('changes that the lines of a file do not show are told in words', () => {
  const notes = filesIn(`diff --git a/bin.png b/bin.png
index 1..2 100644
Binary files a/bin.png and b/bin.png differ
diff --git a/new.png b/new.png
new file mode 100644
index 0..2
Binary files /dev/null and b/new.png differ
diff --git a/empty b/empty
new file mode 100644
index 0..2
diff --git a/gone b/gone
deleted file mode 100644
index 2..0
diff --git a/link b/link
new file mode 120000
index 0..2
--- /dev/null
+++ b/link
@@ -0,0 +1 @@
+a
\\ No newline at end of file
diff --git a/link2 b/link2
index 1..2 120000
--- a/link2
+++ b/link2
@@ -1 +1 @@
-a
+b
diff --git a/run.sh b/run.sh
new file mode 100755
index 0..2
--- /dev/null
+++ b/run.sh
@@ -0,0 +1 @@
+a
diff --git a/mode b/mode
old mode 100644
new mode 100755
diff --git a/plain b/plain2
old mode 100755
new mode 100644
similarity index 100%
rename from plain
rename to plain2
diff --git a/typed b/typed
deleted file mode 100644
--- a/typed
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/typed b/typed
new file mode 120000
--- /dev/null
+++ b/typed
@@ -0,0 +1 @@
+a
diff --git a/sub b/sub
index 1..2 160000
--- a/sub
+++ b/sub
@@ -1 +1 @@
-Subproject commit 1
+Subproject commit 2
`);

  expect(notes.map(({ path, note, added, removed }) => [path, note, added, removed])).toEqual([
    ['bin.png', 'binary', 0, 0],
    ['new.png', 'new file, binary', 0, 0],
    ['empty', 'new file, empty', 0, 0],
    ['gone', 'deleted, empty', 0, 0],
    ['link', 'new symbolic link', 1, 0],
    ['link2', 'symbolic link', 1, 1],
    ['run.sh', 'new file, executable', 1, 0],
    ['mode', 'now executable', 0, 0],
    ['plain2', 'renamed from plain, no longer executable', 0, 0],
    ['typed', 'symbolic link in place of a file', 1, 1],
    ['sub', 'submodule', 1, 1],
  ]);
  expect(notes[9]?.hunks.map(({ header }) => header)).toEqual(['@@ -1 +0,0 @@', '@@ -0,0 +1 @@']);
});

test('the lines of a file have their numbers on both sides', () => {
  expect(filesIn(patch)[0]?.hunks[0]?.lines).toEqual([
    { kind: 'same', text: 'same', before: 1, after: 1 },
    { kind: 'removed', text: 'old', before: 2, after: null },
    { kind: 'added', text: 'new', before: null, after: 2 },
    { kind: 'same', text: 'last', before: 3, after: 3, isOpenEnd: true },
  ]);
});

test('the counts of a file, which are read without its lines, are those of its lines', () => {
  for (const { hunks, added, removed, size } of filesIn(patch)) {
    const lines = hunks.flatMap((hunk) => hunk.lines);
    const count = (kind: DiffLine['kind']) => lines.filter((line) => line.kind === kind).length;
    expect([added, removed, size]).toEqual([count('added'), count('removed'), lines.length]);
  }
});

test('lines are read only for the file of 10,000 that is shown, and once', () => {
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

import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  defaultHandler,
  desktopEntry,
  otherClaimant,
  withOurDefault,
  withoutOurDefault,
} from '../../../src/cli/handler/register-linux.ts';

/** Reads an Exec line as the specification says: string escapes, then quotes, then field codes. */
const argvOf = (entry: string, url: string): readonly string[] => {
  const value = /^Exec=(.*)$/m.exec(entry)?.[1] ?? '';
  const unescaped = value.replace(/\\(.)/g, (_, character: string) => character);
  const words = unescaped.match(/"(?:[^"\\]|\\.)*"|[^\s"]+/g) ?? [];
  return words
    .map((word) => (word.startsWith('"') ? word.slice(1, -1).replace(/\\(["`$\\])/g, '$1') : word))
    .map((word) => word.replace(/%(.)/g, (_, code: string) => (code === 'u' ? url : code)));
};

test('the entry is hidden, opens a terminal and claims the scheme', () => {
  expect(
    desktopEntry({ node: '/usr/bin/node', script: '/opt/agent/agent.js' }),
  ).toBe(`[Desktop Entry]
Type=Application
Name=Agent Task Server
Exec="/usr/bin/node" "/opt/agent/agent.js" open-url -- %u
NoDisplay=true
Terminal=true
MimeType=x-scheme-handler/agent;
`);
});

test.each([
  ['/a b/agent.js', '"/a b/agent.js"'],
  ['/a"b', '"/a\\\\"b"'],
  ["/a'b;c|d", '"/a\'b;c|d"'],
  ['/50%u/x', '"/50%%u/x"'],
  ['/$HOME/x', '"/\\\\$HOME/x"'],
  ['/`id`', '"/\\\\`id\\\\`"'],
  ['/a\\b', '"/a\\\\\\\\b"'],
])('the path %j is written as %j', (script, written) => {
  expect(desktopEntry({ node: '/n', script })).toContain(`\nExec="/n" ${written} open-url -- %u\n`);
});

test('any path without control characters becomes one word', () => {
  const path = fc
    .array(
      fc.oneof(fc.constantFrom(...' "\'`$\\%u=;n'), fc.string({ unit: 'grapheme', maxLength: 3 })),
      {
        maxLength: 12,
      },
    )
    .map((parts) => `/${parts.join('').replace(/[\p{Cc}\u2028\u2029]/gu, '')}`);
  fc.assert(
    fc.property(path, path, (node, script) => {
      const entry = desktopEntry({ node, script });

      expect(entry.split('\n')).toHaveLength(8);
      expect(argvOf(entry, 'agent://x')).toEqual([node, script, 'open-url', '--', 'agent://x']);
    }),
  );
});

const ours = 'agent-task-server.desktop';

test.each([
  ['', null],
  ['[Default Applications]\n', null],
  ['[Default Applications]\nx-scheme-handler/agent=a.desktop\n', 'a.desktop'],
  ['[Default Applications]\nx-scheme-handler/agent=a.desktop;b.desktop;\n', 'a.desktop'],
  ['[Default Applications]\r\nx-scheme-handler/agent = a.desktop;\r\n', 'a.desktop'],
  ['[Default Applications]\nx-scheme-handler/agent=\n', null],
  ['[Default Applications]\n#x-scheme-handler/agent=a.desktop\n', null],
  ['[Default Applications]\nx-scheme-handler/agents=a.desktop\n', null],
  ['[Added Associations]\nx-scheme-handler/agent=a.desktop\n', null],
  ['[Default Applications]\n[Added Associations]\nx-scheme-handler/agent=a.desktop\n', null],
  [
    '[Default Applications]\nx-scheme-handler/agent=a.desktop\nx-scheme-handler/agent=b.desktop\n',
    'b.desktop',
  ],
])('the default of %j is %j', (text, id) => {
  expect(defaultHandler(text)).toBe(id);
});

test('another claimant of the scheme is read from the cache', () => {
  expect(otherClaimant(`[MIME Cache]\nx-scheme-handler/agent=${ours};b.desktop;\n`)).toBe(
    'b.desktop',
  );
  expect(otherClaimant(`[MIME Cache]\nx-scheme-handler/agent=${ours};\n`)).toBeNull();
});

test.each([
  ['', `[Default Applications]\nx-scheme-handler/agent=${ours};\n`],
  ['[A]\nx=y', `[A]\nx=y\n[Default Applications]\nx-scheme-handler/agent=${ours};\n`],
  [
    '# mine\n[Default Applications]\ntext/html=f.desktop\n\n[Added Associations]\na=b\n',
    `# mine\n[Default Applications]\nx-scheme-handler/agent=${ours};\ntext/html=f.desktop\n\n[Added Associations]\na=b\n`,
  ],
  [
    '[Default Applications]\nx-scheme-handler/agent=b.desktop\n',
    `[Default Applications]\nx-scheme-handler/agent=${ours};b.desktop\n`,
  ],
  [
    `[Default Applications]\nx-scheme-handler/agent=b.desktop;${ours};\n`,
    `[Default Applications]\nx-scheme-handler/agent=${ours};b.desktop;\n`,
  ],
  [
    '[Default Applications]\nx-scheme-handler/agent=\n',
    `[Default Applications]\nx-scheme-handler/agent=${ours};\n`,
  ],
  [
    `[Default Applications]\nx-scheme-handler/agent=${ours}\n`,
    `[Default Applications]\nx-scheme-handler/agent=${ours}\n`,
  ],
  [
    '[Default Applications]\r\ntext/html=f.desktop\r\n',
    `[Default Applications]\r\nx-scheme-handler/agent=${ours};\ntext/html=f.desktop\r\n`,
  ],
])('setting the default turns %j into %j', (before, after) => {
  expect(withOurDefault(before)).toBe(after);
});

test.each([
  '',
  '[Default Applications]\n',
  '[Default Applications]\nx-scheme-handler/agent=b.desktop\n',
  '[Added Associations]\nx-scheme-handler/agent=agent-task-server.desktop;\n',
  '[Default Applications]\ntext/html=agent-task-server.desktop;\n',
])('%j has nothing to remove', (text) => {
  expect(withoutOurDefault(text)).toBe(text);
});

test('setting makes us the default, repeating it changes nothing, and removing restores every line', {
  tags: ['slow'],
}, () => {
  const line = fc.oneof(
    fc.constantFrom(
      '[Default Applications]',
      '[Added Associations]',
      '[Default Applications] ',
      '# x',
      '',
      'text/html=a;',
    ),
    fc.constantFrom(
      'x-scheme-handler/agent=a.desktop',
      'x-scheme-handler/agent=a.desktop;b.desktop;\r',
      'ü\r',
    ),
    fc.string({ unit: 'binary' }).map((text) => `x=${text.replaceAll('\n', '')}`),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 8 }), (lines) => {
      const text = [...lines, 'last=line', ''].join('\n');
      const set = withOurDefault(text);

      expect(defaultHandler(set)).toBe(ours);
      expect(withOurDefault(set)).toBe(set);
      expect(withoutOurDefault(set)).toBe(text);
    }),
  );
});

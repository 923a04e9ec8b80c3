import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bin, openProject } from '../support/cli.ts';
import { noFish, noZsh, testUnless } from '../support/needs.ts';
import { temporaryFolder } from '../support/temporary.ts';

const open = async () => {
  const project = openProject();
  const folder = temporaryFolder();
  writeFileSync(
    join(folder, 'agent'),
    `#!/bin/sh\nexec ${process.execPath} ${bin('agent')} "$@"\n`,
    {
      mode: 0o755,
    },
  );
  const first = (await project.agent('create', "Fix: the $(sum) isn't `right`")).out.trim();
  const second = (await project.agent('create', 'Write tests')).out.trim();
  writeFileSync(join(project.root, 'notes.md'), '');
  const path = `PATH=${folder}:$PATH; export PATH; cd ${project.root}\n`;
  return { ...project, first, second, path };
};

const lines = (text: string): readonly string[] => text.split('\n').filter((line) => line !== '');

test('bash completes commands, flags, choices, ids and files, and needs no other package', {
  tags: ['slow'],
}, async () => {
  const { shell, first, second, path } = await open();
  const script = join(temporaryFolder(), 'try.sh');
  const tried = async (words: readonly string[], type = 9) => {
    const list = words.map((word) => `'${word}'`).join(' ');
    writeFileSync(
      script,
      `${path}eval "$(agent completion bash)"
COMP_WORDS=(agent ${list}) COMP_CWORD=${words.length} COMP_TYPE=${type}
_agent
printf '%s\\n' "\${COMPREPLY[@]}"`,
    );
    const { out, err } = await shell(`bash --norc --noprofile ${script}`);
    expect(err).toBe('');
    return lines(out);
  };

  expect(await tried(['cr'])).toEqual(['create']);
  expect(await tried(['merge', '--sq'])).toEqual(['--squash']);
  expect(await tried(['server', 'st'])).toEqual(['start', 'stop', 'status']);
  expect(await tried(['create', 'x', '--role', 'te'])).toEqual(['tester']);
  expect(await tried(['list', '--role', '=', 'te'])).toEqual(['tester']);
  expect(await tried(['show', first.slice(0, -1)])).toEqual([first]);
  expect(await tried(['show', first.slice(3)])).toEqual([first]);
  expect([...(await tried(['show', '']))].sort()).toEqual([first, second].sort());
  expect((await tried(['show', ''], 63)).join()).toContain(`${second}  (Write tests)`);
  expect(await tried(['create', '-F', 'no'])).toEqual(['notes.md']);
  expect(await tried(['frobnicate', ''])).toEqual([]);
});

testUnless(noZsh)('zsh completes with descriptions', async () => {
  const { shell, first, path } = await open();
  const script = join(temporaryFolder(), 'try.zsh');
  writeFileSync(
    script,
    `${path}compdef() { :; }
_describe() { print -rl -- "\${(@P)2}"; }
_files() { print files; }
eval "$(agent completion zsh)"
words=(agent show ${first.slice(0, -1)}) CURRENT=3; _agent
words=(agent compl) CURRENT=2; _agent
words=(agent run --role te) CURRENT=4; _agent
words=(agent create -F '') CURRENT=4; _agent`,
  );

  const { out, err } = await shell(`zsh -f ${script}`);

  expect(err).toBe('');
  expect(lines(out)).toEqual([
    `${first}:Fix: the $(sum) isn't \`right\``,
    'completion:Print a completion script for your shell',
    'tester',
    'files',
  ]);
});

testUnless(noFish)('fish completes with descriptions', async () => {
  const { root, shell, first } = await open();
  const script = join(temporaryFolder(), 'try.fish');
  const folder = temporaryFolder();
  writeFileSync(
    join(folder, 'agent'),
    `#!/bin/sh\nexec ${process.execPath} ${bin('agent')} "$@"\n`,
    {
      mode: 0o755,
    },
  );
  writeFileSync(
    script,
    `set -x PATH ${folder} $PATH
cd ${root}
agent completion fish | source
complete -C 'agent show ${first.slice(0, -1)}'
complete -C 'agent compl'
complete -C 'agent create -F no'`,
  );

  const { out } = await shell(`fish --no-config ${script}`);

  expect(lines(out)).toEqual([
    `${first}\tFix: the $(sum) isn't \`right\``,
    'completion\tPrint a completion script for your shell',
    'notes.md',
  ]);
});

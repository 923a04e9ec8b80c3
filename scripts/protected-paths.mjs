// Writes docs/reference/protected-paths.md from the table in the code; with --check, fails when the
// file has drifted.
import { protectedPaths } from '../build/actors/files/protected-paths.js';
import { generate } from './generated.mjs';

const table = (protection) => {
  const those = protectedPaths.filter((path) => path.protection === protection);
  const rows = [...new Set(those.map(({ reason }) => reason))].map((reason) => {
    const names = those.filter((path) => path.reason === reason).map(({ name }) => `\`${name}\``);
    return `| ${names.join(' ')} | ${reason} |`;
  });
  return ['| name | why |', '|---|---|', ...rows].join('\n');
};

generate(
  'docs/reference/protected-paths.md',
  `# Files that other programs run or trust

Generated from \`src/actors/files/protected-paths.ts\` by \`npm run docs\`; \`npm run check\` fails when this file has drifted.

Programs on your machine run or trust some files only because they lie in a project. An agent that wrote one of them would
be outside of its sandbox the next time that you open the folder. A name counts at every depth, for a file and for a folder with
all that is in it, in any case, and however a file system writes it (\`.GIT\`, \`.git.\`, \`git~1\`).

Ordinary code is not listed. A \`Makefile\`, a \`package.json\` or a test runs when you run it: read the diff before you merge.

## Held: agents cannot write them

The tools \`write\` and \`edit\` refuse them. What a command makes under these names is not saved.

${table('held')}

Held too is what the server trusts and you keep in the project, such as a configuration file, a prompt file or a program of
\`notify.commands\` ([security](../security.md#what-the-server-trusts)).

## Shown: a person sees them first

Agents may write them, because people ask for that. \`agent diff\` names them first, under "runs on your machine" (\`guarded\` in
\`--json\`). A merge puts them into the project.

${table('shown')}
`,
);

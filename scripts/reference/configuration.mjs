import { overridesFrom } from '../../build/cli/config/config.js';
import { code, page, table } from './markdown.mjs';
import { typeOf } from './schema-type.mjs';

/** Keys of a section, with those of nested sections and records. */
const keysOf = ({ properties }, path) =>
  Object.entries(properties).flatMap(([name, schema]) => {
    const key = path === '' ? name : `${path}.${name}`;
    if (schema.properties !== undefined) return keysOf(schema, key);
    const inside = schema.additionalProperties?.properties;
    if (inside !== undefined) return keysOf(schema.additionalProperties, `${key}.<name>`);
    if (schema.description === undefined)
      throw new Error(`${key} has no description in its schema`);
    return [{ key, schema }];
  });

const row = ({ key, schema }) => [
  code(key),
  typeOf(schema),
  schema.default === undefined ? '' : code(JSON.stringify(schema.default)),
  schema.description,
];

/**
 * Every variable and flag that sets a key: each is read by name, so a proxy that has every name
 * finds all.
 */
const overrides = () => {
  const any = new Proxy({}, { get: () => '1' });
  return overridesFrom({ port: 1, host: '1', maxConcurrent: 1 }, any);
};

export const configurationPage = (schema) => {
  const sections = Object.entries(schema.properties).map(([name, section]) => {
    const keys = keysOf({ properties: { [name]: section } }, '');
    return `## ${name}\n\n${table(['key', 'type', 'default', 'meaning'], keys.map(row))}`;
  });
  return page('Configuration', '`src/cli/config/schema/config-schema.ts`', [
    `\`\`\`sh
agent-server --server --config my-server.json
agent doctor                     # checks the configuration and prints it
\`\`\``,
    `Files are JSON. Those that exist are merged, key by key; a later one wins, and a list or a value replaces the one before:

1. \`configs/agent-server.json\` of the package, unless 4 names a file
2. \`~/.config/agent-task-server/config.json\`: for all your projects (\`agent config set --global\`)
3. \`~/.config/agent-task-server/projects/<project>.json\`: for one project (\`agent config set\`)
4. the file of \`--config\`, else of \`AGENT_SERVER_CONFIG\`

\`agent config\` prints what counts, and which file, variable or flag says so. Keys that you leave out have their default. A
key that is unknown or out of range stops the start with exit code 78; the message names the file and the key. A running
server reads the files again on \`SIGHUP\` and keeps the old settings when one is wrong.`,
    'Editors complete keys with [the JSON schema](../../configs/agent-server.schema.json).',
    `## Variables and flags

They set one key each. A flag wins over a variable, a variable over the file.

${table(
  ['variable or flag', 'key'],
  overrides().map(({ source, path }) => [code(source), code(path.join('.'))]),
)}`,
    ...sections,
  ]);
};

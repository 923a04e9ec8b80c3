import { z } from 'zod';
import { toolbox } from '../../build/actors/tools/toolbox.js';
import { code, page, table } from './markdown.mjs';
import { typeOf } from './schema-type.mjs';

/** The arguments of a schema, and those of the objects in its lists. */
const rowsOf = ({ properties, required = [] }, prefix = '') =>
  Object.entries(properties).flatMap(([name, schema]) => {
    const needs = required.includes(name)
      ? 'must be given'
      : `default: ${code(JSON.stringify(schema.default ?? null))}`;
    const row = [code(`${prefix}${name}`), typeOf(schema), needs, schema.description ?? ''];
    const inner =
      schema.items?.properties === undefined ? [] : rowsOf(schema.items, `${prefix}${name}[].`);
    return [row, ...inner];
  });

export const toolsPage = () =>
  page('Tools', '`src/actors/tools`', [
    'What the built-in agent can call. `agent roles` shows which role has which tools. A\n[script](../guides/assistants-and-models.md#the-scripted-model) gives them by these names.',
    ...toolbox.map(({ name, description, schema }) =>
      [
        `## ${name}`,
        description,
        table(
          ['argument', 'type', 'needed', 'meaning'],
          rowsOf(z.toJSONSchema(schema, { io: 'input' })),
        ),
      ].join('\n\n'),
    ),
  ]);

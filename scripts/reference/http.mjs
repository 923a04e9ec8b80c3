import { code, page, table } from './markdown.mjs';
import { typeOf } from './schema-type.mjs';

const routes = ({ paths }) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { summary, responses }]) => [
      code(`${method.toUpperCase()} ${path}`),
      summary,
      Object.keys(responses).join(', '),
    ]),
  );

const described = (name, { description }) => {
  if (description === undefined)
    throw new Error(`the field ${name} has no description in its schema`);
  return description;
};

const fieldRow =
  (required) =>
  ([name, schema]) => [
    code(name),
    typeOf(schema),
    required.includes(name) ? 'yes' : '',
    described(name, schema),
  ];

/** A table of the fields of an object, and one for each object inside it. */
const fields = ({ properties, required = [] }, title) => {
  const rows = Object.entries(properties);
  const inside = rows.filter(([, schema]) => schema.properties !== undefined);
  return [
    ...(title === undefined ? [] : [title]),
    table(['field', 'type', 'required', 'meaning'], rows.map(fieldRow(required))),
    ...inside.flatMap(([name, schema]) => fields(schema, `Inside ${code(name)}:`)),
  ];
};

const pascal = (name) => name.replace(/(^|[_.])([a-z])/g, (_, __, letter) => letter.toUpperCase());

const methodSection = (schemas, request) => {
  const { description, properties } = request;
  const [name] = properties.method.enum;
  const params = schemas[`${pascal(name)}Params`];
  const hasParams = Object.keys(params.properties ?? {}).length > 0;
  return [
    `### ${name}`,
    `${description[0].toUpperCase()}${description.slice(1)}.`,
    ...(hasParams ? fields(params) : ['No parameters.']),
  ].join('\n\n');
};

export const httpPage = (document) => {
  const { schemas } = document.components;
  const requests = schemas.RpcRequest.anyOf.map(({ $ref }) => schemas[$ref.split('/').at(-1)]);
  return page('HTTP', '`src/http/openapi.ts`', [
    `\`\`\`sh
curl -H "Authorization: Bearer $(agent token)" -H 'Content-Type: application/json' \\
  -d '{"jsonrpc":"2.0","id":1,"method":"status","params":{"task_id":"bd-a1b2"}}' \\
  http://127.0.0.1:8080/a2a/execute
\`\`\``,
    '`agent server status` prints the address, `agent token` the token. The whole description is [openapi.json](openapi.json); a\n' +
      'server answers it at `GET /openapi.json`. Names of errors are in [errors](errors.md), frames in [events](events.md).',
    `## Routes\n\n${table(['route', 'what it answers', 'status'], routes(document))}`,
    '## Methods\n\nEvery method can be called at each `/a2a/` route by `POST`, alone or in a list of up to 20, with or without `a2a.` before\n' +
      'its name. Unless it says otherwise, the result is [the task](#the-task).',
    ...requests.map((request) => methodSection(schemas, request)),
    ['## The task', ...fields(schemas.Task)].join('\n\n'),
  ]);
};

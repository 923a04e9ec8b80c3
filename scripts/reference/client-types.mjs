import { typedFrames } from './events-table.mjs';

/** `'a'` for "a": the quotes of this repository. */
const quoted = (text) => `'${text.replaceAll("'", "\\'")}'`;

const literal = (value) => (typeof value === 'string' ? quoted(value) : JSON.stringify(value));

const comment = (text, indent) => (text === undefined ? '' : `${indent}/** ${text} */\n`);

const isName = (key) => /^[A-Za-z_$][\w$]*$/.test(key);

const objectType = ({ properties = {}, required = [], additionalProperties }, indent) => {
  const inner = `${indent}  `;
  const fields = Object.entries(properties).map(([key, schema]) => {
    const mark = required.includes(key) ? '' : '?';
    const name = isName(key) ? key : quoted(key);
    return `${comment(schema.description, inner)}${inner}readonly ${name}${mark}: ${typeText(schema, inner)}${mark === '' ? '' : ' | undefined'};\n`;
  });
  const others = additionalProperties === undefined || additionalProperties === false;
  const rest = others
    ? ''
    : `${inner}readonly [key: string]: ${typeText(additionalProperties, inner)};\n`;
  if (fields.length === 0 && rest === '') return 'Readonly<Record<string, never>>';
  return `{\n${fields.join('')}${rest}${indent}}`;
};

const simple = { string: 'string', boolean: 'boolean', number: 'number', integer: 'number' };

/** With a plain `string` editors would not offer the names that are known. */
const unionPart = (type) => (type === 'string' ? '(string & {})' : type);

/** The TypeScript type of a JSON schema. @throws Error for a construct that no schema here has */
const typeText = (schema, indent) => {
  if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1);
  if (schema.enum !== undefined) return schema.enum.map(literal).join(' | ');
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.anyOf !== undefined)
    return schema.anyOf.map((each) => unionPart(typeText(each, indent))).join(' | ');
  if (schema.type === 'array') {
    const item = typeText(schema.items, indent);
    return `readonly ${item.startsWith('{') || !item.includes('|') ? item : `(${item})`}[]`;
  }
  if (schema.type === 'object') return objectType(schema, indent);
  if (schema.type === 'null') return 'null';
  if (schema.type === 'string' && schema.examples !== undefined)
    return [...schema.examples.map(literal), unionPart('string')].join(' | ');
  const found = simple[schema.type];
  if (found !== undefined) return found;
  if (Object.keys(schema).every((key) => key === 'description')) return 'unknown';
  throw new Error(`a schema without a TypeScript type: ${JSON.stringify(schema)}`);
};

const pascal = (name) => name.replace(/(^|[_.])([a-z])/g, (_, __, letter) => letter.toUpperCase());

const frameType = ({ type, says, data }) => {
  const fields = data.map(
    ({ key, meaning, type: of }) =>
      `${comment(meaning, '      ')}      readonly ${key}?: ${of} | undefined;\n`,
  );
  return `${comment(says, '  ')}  readonly ${type}: {\n${fields.join('')}    };\n`;
};

const framesText = () => `/** The data of each type of frame; what has nothing to say is absent. */
export interface FrameData {
${typedFrames.map(frameType).join('')}}

export type FrameType = keyof FrameData;

/**
 * What happens to a task, by its \`type\`. A newer server may send other types: leave a \`switch\` open
 * for them.
 */
export type Frame = {
  readonly [Type in FrameType]: {
    readonly type: Type;
    readonly task_id: string;
    /** 0 before the first */
    readonly attempt: number;
    /** null for frames that are not in the journal */
    readonly seq: number | null;
    readonly timestamp: string;
    readonly data: FrameData[Type];
  };
}[FrameType];
`;

/** The types of the task, of every method and of the frames, from the description of the server. */
export const clientTypes = ({ components: { schemas } }) => {
  const requests = schemas.RpcRequest.anyOf.map(({ $ref }) => schemas[$ref.split('/').at(-1)]);
  /** The long types that were written, and where. */
  const written = new Map();
  const methods = requests.map(({ description, properties }) => {
    const [name] = properties.method.enum;
    const [params, result] = ['Params', 'Result'].map((suffix) => {
      const text = typeText(schemas[`${pascal(name)}${suffix}`], '    ');
      const before = written.get(text);
      if (text.includes('\n'))
        written.set(text, `Methods[${quoted(name)}]['${suffix.toLowerCase()}']`);
      return before ?? text;
    });
    return `${comment(description, '  ')}  readonly ${isName(name) ? name : quoted(name)}: {\n    readonly params: ${params};\n    readonly result: ${result};\n  };\n`;
  });
  return `// Generated from src/http/openapi-rpc.ts and scripts/reference/events-table.mjs by \`npm run docs\`. Change the source, not this file.

/** A task as it is now. */
export interface Task ${typeText(schemas.Task, '')}

/** The methods of the server, with what they take and answer. */
export interface Methods {
${methods.join('')}}

${framesText()}`;
};

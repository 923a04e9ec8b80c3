import { McpError } from './port.ts';

const variableReference = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/** The variables that a text names: `Bearer ${TOKEN}` names TOKEN. */
export const variablesIn = (text: string): readonly string[] =>
  [...text.matchAll(variableReference)].map(([, name = '']) => name);

/** @throws McpError for a variable that is not set */
export const withVariables = (
  given: Readonly<Record<string, string>>,
  variables: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(given).map(([key, text]) => [
      key,
      text.replace(variableReference, (_, name: string) => {
        const value = variables[name];
        if (value === undefined)
          throw new McpError(
            `the variable ${name}, which ${key} needs, is not set; set it for the server`,
          );
        return value;
      }),
    ]),
  );

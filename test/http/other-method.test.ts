import { expect, test } from 'vitest';
import { startServer } from '../support/running.ts';

test('an address that takes another method answers 405 and names it; an unknown one 404', async () => {
  const { base, headers } = await startServer();
  const asked = async (method: string, path: string) => {
    const response = await fetch(`${base}${path}`, { method, headers });
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    return [response.status, response.headers.get('allow'), error.code, error.message];
  };

  const answers = [
    await asked('GET', '/a2a/execute'),
    await asked('PUT', '/a2a/discovery'),
    await asked('DELETE', '/stream/bd-1?after=2'),
    await asked('PUT', '/mcp'),
    await asked('POST', '/stream/bd-1/more'),
    await asked('POST', '/nothing'),
  ];

  const other = (method: string, allow: string) => [
    ...[405, allow, 'method_not_allowed'],
    `${method} does nothing at this address; use ${allow.replace(', ', ' or ')}`,
  ];
  expect(answers).toEqual([
    other('GET', 'POST'),
    other('PUT', 'GET, POST'),
    other('DELETE', 'GET'),
    other('PUT', 'POST'),
    [404, null, 'not_found', 'no route POST /stream/bd-1/more'],
    [404, null, 'not_found', 'no route POST /nothing'],
  ]);
});

import { expect, test } from 'vitest';
import { ConfigError } from '../../../src/cli/config/config-error.ts';
import { traceHeaders } from '../../../src/cli/server/traces.ts';
import { openProject } from '../../support/cli.ts';
import { startCollector } from '../../support/collector.ts';

test('a server that is told of a collector sends its traces there, with the headers', {
  tags: ['slow'],
}, async () => {
  const collector = await startCollector();
  const { agentWith } = openProject(undefined, { ownServer: true });
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.endpoint}/`,
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20a-key-of-mine',
    OTEL_SERVICE_NAME: 'mine',
  };

  const ended = await agentWith(env, 'engineer', 'say hello');
  await collector.until(() => collector.spans.some(({ name }) => name === 'invoke_agent engineer'));

  expect(ended).toMatchObject({ code: 0 });
  expect(collector.faults).toEqual([]);
  expect(collector.spans[0]?.resource).toMatchObject({ 'service.name': 'mine' });
  expect(collector.headers[0]).toMatchObject({ authorization: 'Bearer a-key-of-mine' });
});

test('wrong headers are refused, and their values are not printed', () => {
  const headersOf = (text: string) => traceHeaders({ OTEL_EXPORTER_OTLP_HEADERS: text });

  expect(headersOf(' x-a = 1 ,, x-b=a%2Cb=c')).toEqual({ 'x-a': '1', 'x-b': 'a,b=c' });
  expect(headersOf('')).toEqual({});
  for (const wrong of ['x=%zzsecret', 'a b=secret', '=secret', 'x=a%0Asecret']) {
    expect(() => headersOf(wrong)).toThrow(ConfigError);
    expect(() => headersOf(wrong)).toThrow(
      /^OTEL_EXPORTER_OTLP_HEADERS holds a wrong [a-z ]+; write/,
    );
  }
});

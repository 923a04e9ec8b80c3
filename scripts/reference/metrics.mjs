import { metricsText } from '../../build/http/metrics-text.js';
import { code, page, table } from './markdown.mjs';

/** Reads the names, types and meanings from the server's answer. */
export const metricsPage = () => {
  const text = metricsText({});
  const rows = [...text.matchAll(/# HELP (\S+) (.+)\n# TYPE \S+ (\S+)/g)].map(
    ([, name, help, type]) => [code(name), type, help],
  );
  return page('Metrics', '`src/http/metrics-text.ts`', [
    `\`\`\`sh
curl -H "Authorization: Bearer $(agent token)" http://127.0.0.1:8080/metrics
\`\`\``,
    'The answer is the text format of Prometheus. With `Accept: application/json` it is one JSON object with the same names,\n' +
      'without `agent_`. Counters are kept in the database, so a restart does not reset them.',
    table(['name', 'type', 'meaning'], rows),
  ]);
};

import { createProcessDurations } from '../../build/actors/store/durations.js';
import { histogramsFrom, metricsText } from '../../build/http/metrics-text.js';
import { code, page, table } from './markdown.mjs';

/** Reads the names, types and meanings from the server's answer. */
export const metricsPage = () => {
  const text = metricsText({}, histogramsFrom({ durations: {} }, createProcessDurations().read()));
  const rows = [...text.matchAll(/# HELP (\S+) (.+)\n# TYPE \S+ (\S+)/g)].map(
    ([, name, help, type]) => [code(name), type, help],
  );
  return page('Metrics', '`src/http/metrics-text.ts`', [
    `\`\`\`sh
curl -H "Authorization: Bearer $(agent token)" http://127.0.0.1:8080/metrics
\`\`\``,
    'The answer is the text format of Prometheus. With `Accept: application/json` it is one JSON object with the counters and\n' +
      'gauges, without `agent_` and with the names of [`metrics`](http.md). Counters and the durations of tasks are kept in the\n' +
      'database, so a restart does not reset them; the durations of tracker calls and commits begin with the process. No metric\n' +
      'has a label but `le`. [Observing](../guides/observing.md#metrics) says how to collect them.',
    table(['name', 'type', 'meaning'], rows),
  ]);
};

// Writes docs/reference and the schema of the configuration from the code that they describe; with
// --check, fails when one of them has drifted.
import { z } from 'zod';
import { configSchema } from '../build/cli/config/schema/config-schema.js';
import { serverName, version } from '../build/cli/version.js';
import { openApiDocument } from '../build/http/openapi.js';
import { workflowDefinitionSchema } from '../build/machines/workflow/workflow-definition.js';
import { workflowNarrowingSchema } from '../build/machines/workflow/workflow-narrowing.js';
import { generate } from './generated.mjs';
import { cliPage } from './reference/cli.mjs';
import { clientTypes } from './reference/client-types.mjs';
import { configurationPage } from './reference/configuration.mjs';
import { errorsPage } from './reference/errors.mjs';
import { eventsPage } from './reference/events.mjs';
import { httpPage } from './reference/http.mjs';
import { metricsPage } from './reference/metrics.mjs';
import { toolsPage } from './reference/tools.mjs';

const json = (value) => `${JSON.stringify(value, null, 2)}\n`;
const schema = z.toJSONSchema(configSchema, { io: 'input' });
const document = openApiDocument(serverName, version);

/** The shipped default file: the keys that people change first, with the defaults of the schema. */
const defaultFile = () => {
  const { server, api, logging } = configSchema.parse({});
  const { port, host, max_concurrent_agents } = server;
  const { mode, max_tokens, provider_model, proxy } = api;
  const { level, format } = logging;
  return {
    server: { port, host, max_concurrent_agents },
    api: { mode, max_tokens, provider_model, proxy: { type: proxy.type } },
    logging: { level, format },
  };
};

generate('configs/agent-server.json', json(defaultFile()));
generate('configs/agent-server.schema.json', json(schema));
generate(
  'configs/workflows/workflow.schema.json',
  json(z.toJSONSchema(workflowDefinitionSchema, { io: 'input' })),
);
generate(
  'configs/workflows/narrowing.schema.json',
  json(z.toJSONSchema(workflowNarrowingSchema, { io: 'input' })),
);
generate('docs/reference/openapi.json', json(document));
generate('src/cli/client/wire-types.ts', clientTypes(document));
generate('docs/reference/cli.md', cliPage());
generate('docs/reference/configuration.md', configurationPage(schema));
generate('docs/reference/errors.md', errorsPage());
generate('docs/reference/events.md', eventsPage());
generate('docs/reference/http.md', httpPage(document));
generate('docs/reference/metrics.md', metricsPage());
generate('docs/reference/tools.md', toolsPage());

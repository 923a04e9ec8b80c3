// Writes docs/reference and the schema of the configuration from the code that they describe; with --check, fails when
// one of them has drifted.
import { z } from 'zod';
import { configSchema } from '../dist/cli/config/config-schema.js';
import { serverName, version } from '../dist/cli/version.js';
import { openApiDocument } from '../dist/http/openapi.js';
import { generate } from './generated.mjs';
import { cliPage } from './reference/cli.mjs';
import { configurationPage } from './reference/configuration.mjs';
import { errorsPage } from './reference/errors.mjs';
import { eventsPage } from './reference/events.mjs';
import { httpPage } from './reference/http.mjs';
import { metricsPage } from './reference/metrics.mjs';

const json = (value) => `${JSON.stringify(value, null, 2)}\n`;
const schema = z.toJSONSchema(configSchema, { io: 'input' });
const document = openApiDocument(serverName, version);

generate('configs/agent-server.schema.json', json(schema));
generate('docs/reference/openapi.json', json(document));
generate('docs/reference/cli.md', cliPage());
generate('docs/reference/configuration.md', configurationPage(schema));
generate('docs/reference/errors.md', errorsPage());
generate('docs/reference/events.md', eventsPage());
generate('docs/reference/http.md', httpPage(document));
generate('docs/reference/metrics.md', metricsPage());

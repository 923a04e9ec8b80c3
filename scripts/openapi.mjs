// Writes docs/reference/openapi.json from the schemas that parse the requests; with --check, fails when the file has drifted.

import { serverName, version } from '../dist/cli/version.js';
import { openApiDocument } from '../dist/http/openapi.js';
import { generate } from './generated.mjs';

generate('docs/reference/openapi.json', `${JSON.stringify(openApiDocument(serverName, version), null, 2)}\n`);

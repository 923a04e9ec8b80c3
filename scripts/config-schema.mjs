// Writes configs/agent-server.schema.json from the zod schema; with --check, fails when the file has drifted.
import { z } from 'zod';
import { configSchema } from '../dist/cli/config-schema.js';
import { generate } from './generated.mjs';

const schema = z.toJSONSchema(configSchema, { io: 'input' });
generate('configs/agent-server.schema.json', `${JSON.stringify(schema, null, 2)}\n`);

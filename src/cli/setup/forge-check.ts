import { messageOf } from '../../machines/message-of.ts';
import {
  createForgePlaces,
  type ForgePlacePorts,
  forgeRepository,
  forgeTokenSource,
} from '../config/places/forge-place.ts';
import { oneLine } from '../output/safe-text.ts';
import type { Check } from './backend-checks.ts';

const waitMs = 10_000;

/** Says where pull requests go, whose token does it, and what that may do. None where nothing names a forge. */
export const forgeChecks = async (ports: ForgePlacePorts): Promise<readonly Check[]> => {
  const config = ports.config();
  const repository = await forgeRepository(config, ports.workspace);
  if (repository === null) return [];
  const check = 'forge';
  const { type, publish, merge } = config;
  const name = `${type} ${repository} at ${new URL(config.api_url).host}`;
  const source = forgeTokenSource(config, ports.variables);
  const rules = `publish: ${publish}, merge: ${merge}`;
  try {
    const { forge } = await createForgePlaces(ports).place(AbortSignal.timeout(waitMs));
    const { account, mayPush, archived } = await forge.about(AbortSignal.timeout(waitMs));
    const may = archived
      ? 'the repository is archived: nothing can be written there'
      : mayPush
        ? 'may push'
        : 'may not push: give it that right, or give another token';
    const detail = oneLine(`${name}: ${account} (${source}) ${may}; ${rules}`, 500);
    return [{ check, status: mayPush ? 'ok' : 'problem', detail }];
  } catch (error) {
    // Who publishes nothing needs no token.
    const isMeant = publish !== 'never' || config.repository !== undefined || source !== null;
    const detail = oneLine(`${name}: ${messageOf(error)}`, 500);
    return [{ check, status: isMeant ? 'problem' : 'note', detail }];
  }
};

import { plural } from '../../machines/plural.ts';
import { createHttpClient } from '../client/http-client.ts';
import type { Address } from '../client/transport.ts';
import { oneLine } from '../output/safe-text.ts';
import type { Check } from '../setup/backend-checks.ts';

/** How the issues that become tasks are followed, by source. */
export const sourceChecks = async (address: Address): Promise<readonly Check[]> => {
  const { sources } = await createHttpClient(address).call('sources', {});
  return sources.map(({ repository, labels, state, issues = 0, problem }) => {
    const of = labels.length === 0 ? '' : ` with ${labels.join(', ')}`;
    const name = `github ${repository ?? 'issues of the forge'}${of}`;
    const how = problem === undefined ? plural(issues, 'open issue') : problem;
    return {
      check: 'source',
      status: problem === undefined && state === 'reading' ? 'ok' : 'problem',
      detail: oneLine(`${name}: ${state}; ${how}`, 500),
    };
  });
};

import { createGitHub } from '../../../src/actors/forge/github.ts';
import { describeForgeReads } from '../../contracts/forge.ts';
import { describeUnless } from '../../support/needs.ts';

const { FORGE_TOKEN: token, FORGE_REPOSITORY: repository, FORGE_API_URL: apiUrl } = process.env;

const why =
  token === undefined || repository === undefined
    ? 'no FORGE_TOKEN and FORGE_REPOSITORY (npm run test:forge)'
    : null;

describeForgeReads(describeUnless(why), `GitHub's ${repository}`, () =>
  createGitHub({
    apiUrl: apiUrl ?? 'https://api.github.com',
    repository: repository ?? '',
    token: () => token ?? null,
    now: Date.now,
  }),
);

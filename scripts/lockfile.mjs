// Fails when somebody could replace a package of the lockfile during download; prints the reason of
// each exception.
import { readFileSync } from 'node:fs';

const lock = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'));
const packages = Object.entries(lock.packages).filter(([path]) => path !== '');

/**
 * Native parts of development tools for other machines: npm never downloaded them here, so it has
 * no hash.
 */
const isForOtherMachines = ({ dev, optional, os }) =>
  dev === true && optional === true && os !== undefined;

const problemsOf = ([path, entry]) => [
  ...(entry.integrity === undefined && !isForOtherMachines(entry)
    ? [`${path} has no integrity`]
    : []),
  ...(entry.integrity !== undefined && !entry.integrity.startsWith('sha512-')
    ? [`${path} has no sha512`]
    : []),
  ...(entry.resolved !== undefined
    ? [`${path} names an address; the registry of the user counts (.npmrc)`]
    : []),
  ...(entry.link === true ? [`${path} is a link`] : []),
  ...(entry.hasInstallScript === true && entry.dev !== true
    ? [`${path} runs a script when it is installed`]
    : []),
];

const problems = packages.flatMap(problemsOf);
if (problems.length > 0) {
  console.error(`package-lock.json:\n${problems.map((problem) => `- ${problem}`).join('\n')}`);
  process.exit(1);
}
const without = packages.filter(([, { integrity }]) => integrity === undefined);
for (const [path, { version }] of without)
  console.log(
    `${path.replace(/^.*node_modules\//, '')}@${version}: no integrity: a development tool for other machines`,
  );
console.log(
  `${packages.length - without.length} of ${packages.length} packages have a sha512 integrity`,
);

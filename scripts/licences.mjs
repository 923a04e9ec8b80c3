// The licences of packages that become part of dist.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const allowed = [
  'MIT',
  'ISC',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'Apache-2.0',
  '0BSD',
  'BlueOak-1.0.0',
];
/** The texts of packages that were published without one: `<name>-<version>.txt`. */
const ownTexts = fileURLToPath(new URL('./licences/', import.meta.url));

/**
 * The packages that the modules belong to: folder, name, version and licence, in the order of their
 * names.
 */
export const bundledPackages = (moduleIds) => {
  const folders = moduleIds.flatMap(
    (id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id) ?? [],
  );
  const packages = folders.map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
    return [`${name}@${version}`, { folder, name, version, license }];
  });
  return [...new Map(packages.toSorted(([one], [other]) => (one < other ? -1 : 1))).values()];
};

const textOf = ({ folder, name, version }) => {
  const files = readdirSync(folder)
    .filter((file) => /^(licen[cs]e|copying|notice)\b/i.test(file))
    .sort();
  const own = `${ownTexts}${name.replace('/', '-')}-${version}.txt`;
  const paths = files.some((file) => !/^notice/i.test(file))
    ? files.map((file) => `${folder}/${file}`)
    : [own];
  if (!existsSync(paths[0]))
    throw new Error(`${name}@${version} has no licence text; add it as ${own}`);
  return paths.map((path) => readFileSync(path, 'utf8').trim()).join('\n\n');
};

const rule = `\n${'-'.repeat(80)}\n\n`;

/** @throws for a package that may not be bundled */
export const licenceTexts = (packages) => {
  const refused = packages.find(({ license }) => !allowed.includes(license));
  if (refused !== undefined)
    throw new Error(
      `${refused.name}@${refused.version} has the licence ${refused.license}; allowed are ${allowed.join(', ')}`,
    );
  const sections = packages.map(
    (one) => `${one.name}@${one.version} (${one.license})\n\n${textOf(one)}\n`,
  );
  return ['The programs in this folder contain these packages.\n', ...sections].join(rule);
};

/** The packages that such a text names, as `name@version`. */
export const packagesIn = (text) =>
  [...text.matchAll(/^-{80}\n\n(\S+@\S+) \(/gm)].map(([, name]) => name);

const variable = (path) =>
  `APP_${path.map((key) => key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()).join('__')}`;

const number = (text) => (/^[+-]?\d+(\.\d+)?$/.test(text) ? Number(text) : undefined);
const boolean = (text) => ({ true: true, false: false })[text];
const list = (text) => (text.trim() === '' ? [] : text.split(',').map((part) => part.trim()));

const kinds = {
  number: { parse: number, expected: 'a number' },
  boolean: { parse: boolean, expected: 'true or false' },
  list: { parse: list, expected: 'a list' },
  string: { parse: (text) => text, expected: 'text' },
};

/** Every setting by its variable: how it is read, and how it is set in `tree`. */
const settingsIn = (tree, path = []) =>
  Object.entries(tree).flatMap(([key, value]) => {
    const here = [...path, key];
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return settingsIn(value, here);
    const kind = kinds[Array.isArray(value) ? 'list' : typeof value];
    const set = (next) => {
      tree[key] = next;
    };
    return [[variable(here), { ...kind, set }]];
  });

/** The defaults, with what `APP_…` variables say instead. @throws Error that names each variable that does not fit */
export const loadSettings = (defaults, env) => {
  const settings = structuredClone(defaults);
  const known = new Map(settingsIn(settings));
  const problems = [];
  for (const name of Object.keys(env).filter((each) => each.startsWith('APP_')).sort()) {
    const setting = known.get(name);
    const value = setting?.parse(env[name]);
    if (setting === undefined) problems.push(`${name}: no such setting`);
    else if (value === undefined) problems.push(`${name}: expected ${setting.expected}`);
    else setting.set(value);
  }
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return settings;
};

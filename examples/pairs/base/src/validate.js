import { readFileSync } from 'node:fs';

const schema = JSON.parse(readFileSync(new URL('../schema.json', import.meta.url), 'utf8'));

export const missing = (item) => schema.required.filter((key) => item[key] === undefined);

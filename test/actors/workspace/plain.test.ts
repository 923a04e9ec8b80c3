import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { plainEntries, plainText } from '../../../src/actors/workspace/git/plain.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const namesIn = async (folder: string, atMost?: number): Promise<readonly string[]> => {
  const names: string[] = [];
  for await (const { name } of plainEntries(folder, atMost)) names.push(name);
  return names.sort();
};

test('a folder is read as far as it is plain and not too large', async () => {
  const folder = temporaryFolder();
  expect(await namesIn(join(folder, 'none'))).toEqual([]);
  writeFileSync(join(folder, 'a'), '');
  mkdirSync(join(folder, 'b'));

  expect(await namesIn(folder, 2)).toEqual(['a', 'b']);
  await expect(namesIn(folder, 1)).rejects.toThrow('has more than 1 entries; run git gc there');
  symlinkSync('a', join(folder, 'c'));
  await expect(namesIn(folder)).rejects.toThrow('c is not a plain file or folder');
});

test('a text is read from a plain file of at most some bytes', async () => {
  const file = join(temporaryFolder(), 'file');
  expect(await plainText(file)).toBeNull();
  writeFileSync(file, 'ä\n');
  symlinkSync(file, `${file}.link`);

  expect(await plainText(file, 3)).toBe('ä\n');
  await expect(plainText(file, 2)).rejects.toThrow('is too large');
  await expect(plainText(`${file}.link`)).rejects.toThrow('is not a plain file or folder');
});

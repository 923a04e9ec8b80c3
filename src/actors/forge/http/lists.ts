import { z } from 'zod';
import { type ForgeClient, unchanged } from './client.ts';

const itemsAtMost = 1_000;
const keptAtMost = 64;
const keptTextAtMost = 256 * 1024;

export interface Listed<Item> {
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly item: z.ZodType<Item>;
  readonly signal: AbortSignal;
}

interface KeptPage {
  readonly etag: string;
  readonly raw: readonly unknown[];
  readonly lastPage: number;
}

/** How a forge asks for a page, and the most entries that one may have. */
export interface PageSize {
  readonly parameter: string;
  readonly entries: number;
}

/** Lists with pages. What did not change since costs no part of the rate limit. */
export const createLists = ({ ask, request }: ForgeClient, { parameter, entries }: PageSize) => {
  const pagesAtMost = Math.ceil(itemsAtMost / entries);
  const kept = new Map<string, KeptPage>();

  const page = async <Item>({ path, query, item, signal }: Listed<Item>, number: number) => {
    const items = z.array(item);
    // The kept page is as it came: another schema, or the same once more, can read it.
    const schema = z.array(z.unknown()).transform((raw, context) => {
      const read = items.safeParse(raw);
      if (read.success) return { raw, items: read.data };
      context.addIssue('not such a list');
      return z.NEVER;
    });
    const asked = { path, query: { [parameter]: entries, ...query, page: number }, schema, signal };
    const key = JSON.stringify([path, query, number]);
    const known = kept.get(key);
    const answer = await request({ ...asked, etag: known?.etag });
    kept.delete(key);
    if (answer === unchanged && known !== undefined) {
      kept.set(key, known);
      return { items: items.parse(known.raw), lastPage: known.lastPage };
    }
    if (answer === unchanged) return { items: (await ask(asked)).items, lastPage: 1 };
    const { data, etag, lastPage } = answer;
    if (etag !== null && JSON.stringify(data.raw).length <= keptTextAtMost)
      kept.set(key, { etag, raw: data.raw, lastPage });
    for (const [oldest] of kept) if (kept.size > keptAtMost) kept.delete(oldest);
    return { items: data.items, lastPage };
  };

  return {
    /** The last thousand entries, in the order of the forge. */
    newest: async <Item>(listed: Listed<Item>): Promise<readonly Item[]> => {
      const first = await page(listed, 1);
      const items = first.lastPage > pagesAtMost ? [] : [...first.items];
      const from = Math.max(2, first.lastPage - pagesAtMost + 1);
      for (let number = from; number <= first.lastPage; number += 1)
        items.push(...(await page(listed, number)).items);
      return items;
    },
    /** The first thousand entries. */
    first: async <Item>(listed: Listed<Item>): Promise<readonly Item[]> => {
      const { items, lastPage } = await page(listed, 1);
      const all = [...items];
      for (let number = 2; number <= Math.min(lastPage, pagesAtMost); number += 1)
        all.push(...(await page(listed, number)).items);
      return all;
    },
  };
};

export type ForgeLists = ReturnType<typeof createLists>;

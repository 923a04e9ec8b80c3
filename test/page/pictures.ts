import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';

/**
 * Views as small pictures, one pixel for each tile of the screen: fonts, ids and ages differ, a
 * lost column or style sheet is seen.
 */
const folder = join(import.meta.dirname, 'pictures');
/** Of 255, in any of the three colours. */
const tileTolerance = 12;
const looksAtMost = 10;
/** Writes the pictures anew; look at them before you commit them. */
const isUpdate = process.env['UPDATE_PICTURES'] === '1';

const fileOf = (name: string): string => join(folder, `${name}.png`);

/** In a blank page, which may draw. */
const tools = `
  const bitmapOf = async (url) => createImageBitmap(await (await fetch(url)).blob());
  window.shrink = async (url, width, height) => {
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [width, height];
    const drawing = canvas.getContext('2d');
    drawing.imageSmoothingQuality = 'high';
    drawing.drawImage(await bitmapOf(url), 0, 0, width, height);
    return canvas.toDataURL();
  };
  const coloursOf = async (url) => {
    const picture = await bitmapOf(url);
    const drawing = new OffscreenCanvas(picture.width, picture.height).getContext('2d');
    drawing.drawImage(picture, 0, 0);
    return drawing.getImageData(0, 0, picture.width, picture.height).data;
  };
  const differ = (one, other, at, tolerance) =>
    [0, 1, 2].some((colour) => Math.abs(one[at + colour] - other[at + colour]) > tolerance);
  window.share = async (one, other, tolerance) => {
    const [before, after] = await Promise.all([coloursOf(one), coloursOf(other)]);
    if (before.length !== after.length) return 1;
    let [drawn, differing] = [0, 0];
    for (let at = 4; at < before.length; at += 4) {
      if (differ(before, after, at, tolerance)) differing += 1;
      if (differ(before.subarray(4), before, at - 4, 2)) drawn += 1;
    }
    return differing / drawn;
  };`;

const prefix = 'data:image/png;base64,';

export const openPictures = async (browser: Browser) => {
  const blank = await browser.newPage();
  await blank.evaluate(tools);
  const shrink = async (page: Page): Promise<string> => {
    const { width, height } = page.viewportSize() ?? { width: 1, height: 1 };
    const whole = prefix + (await page.screenshot({ animations: 'disabled' })).toString('base64');
    const size = `${Math.round(width / 32)}, ${Math.round(height / 32)}`;
    return blank.evaluate<string>(`shrink(${JSON.stringify(whole)}, ${size})`);
  };
  /** The same twice: what is loaded and laid out is there. */
  const settled = async (page: Page): Promise<string> => {
    let before = '';
    let now = await shrink(page);
    for (let look = 0; look < looksAtMost && before !== now; look += 1) {
      before = now;
      now = await shrink(page);
    }
    return now;
  };
  return {
    /** With UPDATE_PICTURES=1 the picture that later ones are compared with. */
    keep: async (page: Page, name: string): Promise<void> => {
      if (!isUpdate) return;
      mkdirSync(folder, { recursive: true });
      writeFileSync(
        fileOf(name),
        Buffer.from((await settled(page)).slice(prefix.length), 'base64'),
      );
    },
    /**
     * Tiles that differ from the kept picture, as a share of those where something is drawn. A view
     * that is drawn late is looked at again, until it differs by at most `enough`.
     */
    compare: async (page: Page, name: string, enough = 1): Promise<number> => {
      const before = prefix + readFileSync(fileOf(name)).toString('base64');
      let share = 1;
      for (let look = 0; look === 0 || (look < looksAtMost && share > enough); look += 1)
        share = await blank.evaluate<number>(
          `share(${JSON.stringify(before)}, ${JSON.stringify(await settled(page))}, ${tileTolerance})`,
        );
      return share;
    },
  };
};

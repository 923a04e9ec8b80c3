/** Sum of a basket in cents. Each line has a price in cents and a quantity. */
export const total = (lines) => lines.reduce((sum, { price }) => sum + price, 0);

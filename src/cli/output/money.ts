/** `$0.0042`, `$1.37`; undefined where the price is unknown. */
export const costText = (usd: number | undefined): string | undefined => {
  if (usd === undefined) return undefined;
  return usd === 0 || usd >= 0.1 ? `$${usd.toFixed(2)}` : `$${usd.toFixed(4)}`;
};

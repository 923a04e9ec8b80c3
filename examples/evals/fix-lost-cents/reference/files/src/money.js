/**
 * Divides whole cents by weights. The parts add up: what rounding leaves goes to those that were cut the most.
 * @throws RangeError when no weight is above zero
 */
export const divide = (cents, weights) => {
  const sum = weights.reduce((all, weight) => all + weight, 0);
  if (!(sum > 0)) throw new RangeError('one weight at least must be above zero');
  const sign = Math.sign(cents);
  const exact = weights.map((weight) => (Math.abs(cents) * weight) / sum);
  const parts = exact.map(Math.floor);
  const left = Math.abs(cents) - parts.reduce((all, part) => all + part, 0);
  const cut = exact.map((value, index) => ({ index, by: value - parts[index] })).sort((a, b) => b.by - a.by || a.index - b.index);
  for (const { index } of cut.slice(0, left)) parts[index] += 1;
  return parts.map((part) => (part === 0 ? 0 : part * sign));
};

export const format = (cents) => `${(cents / 100).toFixed(2)} EUR`;

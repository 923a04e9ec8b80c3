/** Divides whole cents by weights. */
export const divide = (cents, weights) => {
  const sum = weights.reduce((all, weight) => all + weight, 0);
  return weights.map((weight) => Math.floor((cents * weight) / sum));
};

export const format = (cents) => `${(cents / 100).toFixed(2)} EUR`;

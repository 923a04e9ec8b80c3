/** What all pieces of an item cost, in cents. */
export const price = (item) => item.cents * item.count;

export const label = (item) => `${item.count} × ${item.name}`;

/** Cents as people write them. */
export const amount = (cents) => {
  const whole = Math.trunc(cents / 100);
  const rest = String(cents % 100).padStart(2, '0');
  return `${whole}.${rest}`;
};

import { divide } from './money.js';

/** What each person pays of an invoice: `[{ name, cents }]`, in the order of the people. */
export const invoiceShares = ({ lines, people }) => {
  const total = lines.reduce((sum, { cents, quantity = 1 }) => sum + cents * quantity, 0);
  const shares = divide(total, people.map(({ weight = 1 }) => weight));
  return people.map(({ name }, index) => ({ name, cents: shares[index] }));
};

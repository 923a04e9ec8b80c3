import { price } from './item.js';
import { tax } from './tax.js';

export const total = (items) => items.reduce((sum, item) => sum + price(item), 0);

export const withTax = (items) => {
  const net = total(items);
  return net + tax(net);
};

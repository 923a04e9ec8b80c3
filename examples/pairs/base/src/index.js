export { total, withTax } from './cart.js';
export { amount, label, price } from './item.js';
export { tax } from './tax.js';

import { config } from './config.js';

export const tax = (cents) => Math.round(cents * config.taxRate);

'use strict';

exports.sum = (a, b) => {
  if (typeof a !== 'number') throw new TypeError('no number');
  return a + b;
};

exports.never = (x) => {
  const y = x * 2;
  return y;
};

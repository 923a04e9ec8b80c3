'use strict';

exports.untouched = (a) => {
  if (a) return 1;
  return 2;
};

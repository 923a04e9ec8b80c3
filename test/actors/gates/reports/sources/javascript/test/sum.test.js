'use strict';
const assert = require('node:assert');
const test = require('node:test');
const { sum } = require('../src/sum.js');

test('adds', () => assert.equal(sum(1, 2), 3));

#!/usr/bin/env node
// Any program: its output is text, and its exit code says how it went.
import { play } from './kit.mjs';

const wire = {
  begin: () => {},
  session: () => [],
  turn: ({ text }) => (text === undefined ? [] : [text]),
  result: () => [],
  failure: (message) => [message],
};
await play(wire, { session: null });

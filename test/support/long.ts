/** Whether the long form of the suites was asked for: `npm run test:long`. */
export const isLong = process.env['AGENT_TEST_LONG'] === '1';

/** True in the long form of the suites: `npm run test:long`. */
export const isLong = process.env['AGENT_TEST_LONG'] === '1';

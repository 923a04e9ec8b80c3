/** The User-Agent of our command line. Anybody may send it: it tells the way, and gives no right. */
export const cliAgent = 'agent-cli';

/** The name of whoever has the token of the server. */
export const ownerName = 'owner';

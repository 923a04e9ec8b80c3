/** A name as it may stand in a URL: lower case, words joined by single dashes, at most 40 characters. */
export const slugify = (name) => {
  const words = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
  if (words === '') return 'untitled';
  return words.slice(0, 40).replace(/-$/, '');
};

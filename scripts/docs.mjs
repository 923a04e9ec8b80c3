// Writes every generated file; with --check, fails when one has drifted from its source.
for (const name of [
  'adrs',
  'charts',
  'machines-doc',
  'reference',
  'protected-paths',
  'museum',
  'tour',
])
  await import(`./${name}.mjs`);

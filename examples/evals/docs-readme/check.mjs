import assert from 'node:assert/strict';
import { check, load, node, read } from '../check.mjs';

const exported = Object.keys(await load('src/index.js'));
const readme = read('README.md');
const sections = readme.split(/^### /m).slice(1);
const section = (name) => sections.find((text) => text.startsWith(`${name}(`)) ?? '';
const examples = [...readme.matchAll(/```js\n([^]*?)```/g)].map(([, code]) => code);
const code = "export const join = (parts, separator = ' ')";

await check({
  'the code is as it was': () => {
    assert.ok(read('src/index.js').includes(code));
    assert.deepEqual(exported.sort(), ['countWord', 'join', 'truncate']);
  },
  'every function has its section': () => {
    for (const name of exported) assert.notEqual(section(name), '', `${name} has none`);
  },
  'signatures name all parameters': () => {
    assert.match(section('join'), /^join\(parts, ?separator/);
    assert.match(section('truncate'), /^truncate\(text, ?length, ?mark/);
    assert.match(section('countWord'), /^countWord\(text, ?word/);
  },
  'nothing else is described': () => {
    assert.equal(sections.length, exported.length);
    assert.doesNotMatch(readme, /capitalize/);
  },
  'every section has an example': () => {
    for (const name of exported) assert.match(section(name), new RegExp('```js[^]*' + name + '\\(' + '[^]*// =>'), name);
  },
  'every example prints what it says': () => {
    for (const example of examples) {
      const said = [...example.matchAll(/\/\/ => (.*)$/gm)].map(([, text]) => text.trim());
      const { status, stdout } = node(['--input-type=module', '--eval', example]);
      assert.equal(status, 0, `it does not run: ${example}`);
      assert.deepEqual(stdout.trimEnd().split('\n').map((line) => line.trim()), said);
    }
  },
  'the separator is described': () => assert.match(section('join'), /space/i),
});

